import { expect, test } from "vitest";
import type { SessionStore } from "../../services/auth/session-store.ts";
import {
  createMongoSessionStore,
  sessionMongoSchema,
} from "../../services/auth/session-store-mongo.ts";
import { describeMongo } from "../support/mongo.ts";
import { sessionStoreContract } from "./sessions.suite.ts";

await describeMongo(
  "sessions in MongoDB",
  (mongo) => {
    sessionStoreContract(async (): Promise<[SessionStore, SessionStore]> => {
      const name = mongo.newName();
      const stores = [
        createMongoSessionStore(mongo.connect(name)),
        createMongoSessionStore(mongo.connect(name)),
      ] as const;
      for (const store of stores) await store.open();
      return [...stores];
    });

    // This test is the last, because it checks the queries of the tests above.
    test("every query is served by a declared index, and every index serves one", async () => {
      const { shapes, unserved, unused, scans } = await mongo.judgeQueries(sessionMongoSchema);
      expect(shapes.length).toBeGreaterThan(2);
      expect(unserved).toEqual([]);
      expect(unused).toEqual([]);
      expect(scans).toEqual([]);
    });
  },
  { inTurn: true },
);
