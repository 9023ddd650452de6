import { expect, test } from "vitest";
import { createMongoLedger } from "../../services/billing/store-mongo.ts";
import { ledgerMongoSchema } from "../../services/billing/store-mongo-schema.ts";
import { describeMongo } from "../support/mongo.ts";
import { ledgerStoreContract } from "./ledger.suite.ts";

await describeMongo("the ledger in MongoDB", (mongo) => {
  ledgerStoreContract(async () => {
    const name = mongo.newName();
    const stores = [
      createMongoLedger(mongo.connect(name)),
      createMongoLedger(mongo.connect(name)),
    ] as const;
    for (const store of stores) await store.open();
    return [...stores];
  });

  // Last: it looks at what the tests above have sent.
  test("every query is served by a declared index, and every index serves one", async () => {
    const { shapes, unserved, unused, scans } = await mongo.judgeQueries(ledgerMongoSchema);
    expect(shapes.length).toBeGreaterThan(5);
    expect(unserved).toEqual([]);
    expect(unused).toEqual([]);
    expect(scans).toEqual([]);
  });
});
