import { expect, test } from "vitest";
import type { AuthStore } from "../../services/auth/store.ts";
import { createMongoAuthStore } from "../../services/auth/store-mongo.ts";
import { authMongoSchema } from "../../services/auth/store-mongo-docs.ts";
import { describeMongo } from "../support/mongo.ts";
import { accountChangeContract } from "./keys.accounts.suite.ts";
import { operatorStoreContract } from "./keys.closing.suite.ts";
import { managedKeyContract } from "./keys.managed.suite.ts";
import { keyStoreContract } from "./keys.suite.ts";

await describeMongo("keys in MongoDB", (mongo) => {
  const open = async (): Promise<[AuthStore, AuthStore]> => {
    const name = mongo.newName();
    const stores = [
      createMongoAuthStore(mongo.connect(name)),
      createMongoAuthStore(mongo.connect(name)),
    ] as const;
    for (const store of stores) await store.open();
    return [...stores];
  };
  keyStoreContract(open);
  managedKeyContract(open);
  operatorStoreContract(open);
  accountChangeContract(open);

  // This test is the last, because it checks the queries of the tests above.
  test("every query is served by a declared index, and every index serves one", async () => {
    const { shapes, unserved, unused, scans } = await mongo.judgeQueries(authMongoSchema);
    expect(shapes.length).toBeGreaterThan(5);
    expect(unserved).toEqual([]);
    expect(unused).toEqual([]);
    expect(scans).toEqual([]);
  });
});
