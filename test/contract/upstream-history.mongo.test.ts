import { expect, test } from "vitest";
import { mongoSchemaOf } from "#kit/documents/mongo.ts";
import {
  createHistoryStore,
  historyComponent,
} from "../../services/upstreams/health/history-store.ts";
import { describeMongo } from "../support/mongo.ts";
import { upstreamHistoryContract } from "./upstream-history.suite.ts";

await describeMongo(
  "the hours of upstreams in MongoDB",
  (mongo) => {
    upstreamHistoryContract(async () => {
      const name = mongo.newName();
      const connect = () => createHistoryStore({ kind: "mongodb", mongo: mongo.connect(name) });
      const stores = [connect(), connect()] as const;
      for (const store of stores) await store.open();
      return [...stores];
    });

    // This test is the last, because it checks the queries of the tests above.
    test("every query is served by a declared index, and every index serves one", async () => {
      const { unserved, unused, scans } = await mongo.judgeQueries(mongoSchemaOf(historyComponent));
      expect({ unserved, unused, scans }).toEqual({ unserved: [], unused: [], scans: [] });
    });
  },
  { inTurn: true },
);
