import { expect, test } from "vitest";
import { mongoSchemaOf } from "#kit/documents/mongo.ts";
import { openSpeechStore } from "../../services/media/speech/context.ts";
import { speechComponent } from "../../services/media/speech/store-documents.ts";
import { describeMongo } from "../support/mongo.ts";
import { audio, newIntent, speechStoreContract, t0 } from "./speech.suite.ts";

await describeMongo(
  "speech requests in MongoDB",
  (mongo) => {
    const openIn = async (name: string) => {
      const opened = openSpeechStore({ kind: "mongodb", mongo: mongo.connect(name) });
      await opened.prepare();
      return opened.store;
    };

    speechStoreContract(async () => {
      const name = mongo.newName();
      return [await openIn(name), await openIn(name)];
    });

    test("documents are as replicas of an earlier version write and read them", async () => {
      const name = mongo.newName();
      const store = await openIn(name);
      const speech = mongo.raw(name).collection<{ _id: string }>("media_speech");
      const { speechId, leaseUntil, ...facts } = newIntent("a");
      const idem = { key: "k", fingerprint: "print" };
      await store.open({ speechId, leaseUntil, ...facts, idempotency: idem, requestId: "req_a" });
      const opened = { _id: speechId, ...facts, idem };
      expect(await speech.findOne({}, { useBigInt64: true })).toStrictEqual({
        ...{ ...opened, status: "open", dueAt: leaseUntil },
      });
      await store.close(speechId, { owner: facts.owner }, { kind: "settling", audio }, t0 + 5);
      const settling = await speech.findOne({}, { useBigInt64: true });
      expect(settling).toStrictEqual({
        ...{ ...opened, status: "settling", dueAt: t0 + 5, audio },
        closing: expect.anything(),
      });
      await store.finish(speechId, undefined);
      const { dueAt: _, ...closed } = { ...settling, status: "closed", dueAt: 0 };
      expect(await speech.findOne({}, { useBigInt64: true })).toStrictEqual(closed);
      const { format: __, ...older } = audio;
      await speech.updateOne({}, { $set: { audio: older } });
      expect((await store.find(speechId))?.audio).toEqual({ ...older, format: "mp3" });
    });

    // This test is the last, because it checks the queries of the tests above.
    test("every query is served by a declared index, and every index serves one", async () => {
      const { shapes, unserved, unused, scans } = await mongo.judgeQueries(
        mongoSchemaOf(speechComponent),
      );
      expect(shapes.length).toBeGreaterThan(5);
      expect(unserved).toEqual([]);
      expect(unused).toEqual([]);
      expect(scans).toEqual([]);
    });
  },
  { inTurn: true },
);
