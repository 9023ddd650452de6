import { expect, test } from "vitest";
import { createMongoAuthStore } from "../../services/auth/store-mongo.ts";
import { authMongoSchema } from "../../services/auth/store-mongo-schema.ts";
import { describeMongo } from "../support/mongo.ts";
import { keyStoreContract } from "./keys.suite.ts";

await describeMongo("keys in MongoDB", (mongo) => {
  keyStoreContract(async () => {
    const name = mongo.newName();
    const stores = [
      createMongoAuthStore(mongo.connect(name)),
      createMongoAuthStore(mongo.connect(name)),
    ] as const;
    for (const store of stores) await store.open();
    return [...stores];
  });

  // Last: it looks at what the tests above have sent.
  test("every query is served by a declared index, and every index serves one", async () => {
    const { shapes, unserved, unused, scans } = await mongo.judgeQueries(authMongoSchema);
    expect(shapes.length).toBeGreaterThan(5);
    expect(unserved).toEqual([]);
    expect(unused).toEqual([]);
    expect(scans).toEqual([]);
  });
});
