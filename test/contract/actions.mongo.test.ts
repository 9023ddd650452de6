import { expect, test } from "vitest";
import {
  auditMongoSchema,
  createMongoActionStore,
} from "../../services/auth/action-store-mongo.ts";
import { describeMongo } from "../support/mongo.ts";
import { actionStoreContract } from "./actions.suite.ts";

await describeMongo(
  "the audit log in MongoDB",
  (mongo) => {
    actionStoreContract(async () => {
      const name = mongo.newName();
      const stores = [
        createMongoActionStore(mongo.connect(name)),
        createMongoActionStore(mongo.connect(name)),
      ] as const;
      for (const store of stores) await store.open();
      return [...stores];
    });

    // This test is the last, because it checks the queries of the tests above.
    test("every query is served by a declared index, and every index serves one", async () => {
      const { unserved, unused, scans } = await mongo.judgeQueries(auditMongoSchema);
      expect({ unserved, unused, scans }).toEqual({ unserved: [], unused: [], scans: [] });
    });
  },
  { inTurn: true },
);
