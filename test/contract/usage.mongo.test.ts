import { expect, test } from "vitest";
import { createMongoUsageStore } from "../../services/text/store/store-mongo.ts";
import { textMongoSchema } from "../../services/text/store/store-mongo-docs.ts";
import { describeMongo } from "../support/mongo.ts";
import { keptBesideContract } from "./usage.kept.suite.ts";
import { type UsageStores, usageStoreContract } from "./usage.suite.ts";

await describeMongo(
  "usage in MongoDB",
  (mongo) => {
    const connect: UsageStores = async () => {
      const name = mongo.newName();
      const stores = [
        createMongoUsageStore(mongo.connect(name)),
        createMongoUsageStore(mongo.connect(name)),
      ] as const;
      for (const store of stores) await store.prepare();
      return [...stores];
    };
    usageStoreContract(connect);
    keptBesideContract(connect);

    // This test is the last, because it checks the queries of the tests above.
    test("every query is served by a declared index, and every index serves one", async () => {
      const { shapes, unserved, unused, scans } = await mongo.judgeQueries(textMongoSchema);
      expect(shapes.length).toBeGreaterThan(5);
      expect(unserved).toEqual([]);
      expect(unused).toEqual([]);
      expect(scans).toEqual([]);
    });
  },
  { inTurn: true },
);
