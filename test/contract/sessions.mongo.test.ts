import { expect, test } from "vitest";
import { mongoSchemaOf } from "#kit/documents/mongo.ts";
import type { SessionStore } from "../../services/auth/session-store.ts";
import {
  createSessionStore,
  sessionComponent,
} from "../../services/auth/session-store-documents.ts";
import { describeMongo } from "../support/mongo.ts";
import { sessionStoreContract } from "./sessions.suite.ts";

await describeMongo(
  "sessions in MongoDB",
  (mongo) => {
    sessionStoreContract(async (): Promise<[SessionStore, SessionStore]> => {
      const name = mongo.newName();
      const connect = () => createSessionStore({ kind: "mongodb", mongo: mongo.connect(name) });
      const stores = [connect(), connect()] as const;
      for (const store of stores) await store.open();
      return [...stores];
    });

    test("documents are as replicas of an earlier version write and read them", async () => {
      const name = mongo.newName();
      const store = createSessionStore({ kind: "mongodb", mongo: mongo.connect(name) });
      await store.open();
      const [sha256, secretSha256] = [Buffer.alloc(32, 0xa1), Buffer.alloc(32, 0xb2)];
      const identity = { issuer: "https://id.example", subject: "anna", confirmed: true };
      const times = { createdAtMs: 1, seenAtMs: 1, endsAtMs: 9 };
      await store.create({ sha256, secretSha256, keyId: "key_a", identity, ...times }, 5);
      await store.touch(sha256, 4);
      expect(await mongo.raw(name).collection("auth_session").findOne()).toStrictEqual({
        ...{ _id: "a1".repeat(32), secret: "b2".repeat(32), holder: "key_a", keyId: "key_a" },
        ...{ identity, ...times, seenAtMs: 4 },
      });
    });

    // This test is the last, because it checks the queries of the tests above.
    test("every query is served by a declared index, and every index serves one", async () => {
      const { shapes, unserved, unused, scans } = await mongo.judgeQueries(
        mongoSchemaOf(sessionComponent),
      );
      expect(shapes.length).toBeGreaterThan(2);
      expect(unserved).toEqual([]);
      expect(unused).toEqual([]);
      expect(scans).toEqual([]);
    });
  },
  { inTurn: true },
);
