import { afterEach, beforeEach, expect, test } from "vitest";
import { openSpeechStore } from "../../services/media/speech/context.ts";
import type { SpeechStore } from "../../services/media/speech/store.ts";
import { createSpeechStore } from "../../services/media/speech/store-documents.ts";
import { describeMongo } from "../support/mongo.ts";
import { type Fate, type MongoWire, openMongoWire } from "../support/mongo-wire.ts";
import { audio, newIntent, t0 } from "./speech.suite.ts";

const id = "speech_a";
const intent = newIntent("a", { idempotency: { key: "k", fingerprint: "print-a" } });
const own = { owner: intent.owner };
const settling = { kind: "settling", audio } as const;
const releasing = { kind: "releasing" } as const;
const leaseOver = { leaseOverAt: intent.leaseUntil };

await describeMongo("speech requests on a bad wire", (mongo) => {
  let wire: MongoWire;
  let store: SpeechStore;
  let other: SpeechStore;

  beforeEach(async () => {
    const name = mongo.newName();
    const opened = openSpeechStore({ kind: "mongodb", mongo: mongo.connect(name) });
    await opened.prepare();
    other = opened.store;
    wire = await openMongoWire(mongo.url);
    store = createSpeechStore({
      kind: "mongodb",
      mongo: mongo.connect(name, { url: wire.url }),
    });
  });
  afterEach(() => wire[Symbol.asyncDispose]());

  /** Sets the treatment of the next such command. `meanwhile` runs before it. */
  function next(command: string, fate: Fate, meanwhile: () => Promise<unknown> = async () => {}) {
    let isOver = false;
    wire.rule = async (sent) => {
      if (isOver || sent[command] !== "media_speech") return "pass";
      isOver = true;
      await meanwhile();
      return fate;
    };
  }

  test("an intent whose answer was lost is open, and holds its slot", async () => {
    next("insert", "lost reply");
    expect(await store.open(intent)).toBe(true);
    const late = newIntent("b", { idempotency: { key: "k", fingerprint: "print-b" } });
    expect(await other.open(late)).toBe(false);
    expect(await other.findBySlot({ keyId: "key_1", key: "k" })).toMatchObject({ speechId: id });
  });

  test("an intent whose slot went to another meanwhile is not open", async () => {
    const theirs = newIntent("b", { idempotency: { key: "k", fingerprint: "print-b" } });
    next("insert", "lost request", () => other.open(theirs));
    expect(await store.open(intent)).toBe(false);
    expect(await other.find(id)).toBeUndefined();
  });

  test.each([
    ["settling", own, settling],
    ["releasing", own, releasing],
    ["releasing an orphan", leaseOver, releasing],
  ])(
    "the process that closed (%s) knows that it did, and no other does",
    async (_, closer, closing) => {
      await other.open(intent);
      next("update", "lost reply");
      expect(await store.close(id, closer, closing, t0 + 5)).toBe(true);
      // The same content, but by another process.
      expect(await other.close(id, closer, closing, t0 + 5)).toBe(false);
      expect(await other.find(id)).toMatchObject({ status: closing.kind });
    },
  );

  test("who was beaten to it by the very same while his own was under way knows that too", async () => {
    await other.open(intent);
    next("update", "lost request", () => other.close(id, leaseOver, releasing, t0 + 5));
    expect(await store.close(id, leaseOver, releasing, t0 + 5)).toBe(false);
  });

  test("a close that arrives after its orphan's end changes nothing", async () => {
    await other.open(intent);
    next("update", "pass", () => other.close(id, leaseOver, releasing, t0 + 5));
    expect(await store.close(id, own, settling, t0 + 9)).toBe(false);
    expect(await other.find(id)).toMatchObject({ status: "releasing" });
    expect(await other.due(t0 + 5, 10)).toHaveLength(1);
  });

  test("beats, finishing, letting go and forgetting without an answer", async () => {
    await other.open(intent);
    next("update", "lost reply");
    expect(await store.beat(id, intent.owner, t0 + 50)).toBe(true);
    await other.close(id, own, settling, t0 + 5);
    next("update", "lost reply");
    await store.finish(id, t0 + 100);
    expect(await other.find(id)).toMatchObject({ status: "closed", audio });
    next("delete", "lost reply");
    await store.forget(id);
    expect(await other.find(id)).toBeUndefined();
    await other.open(intent);
    next("delete", "lost request");
    await store.withdraw(id, intent.owner);
    expect(await other.find(id)).toBeUndefined();
    await other.open(intent);
    await other.close(id, own, releasing, t0 + 5);
    next("delete", "lost reply");
    await store.finish(id, t0 + 100);
    expect(await other.find(id)).toBeUndefined();
  });
});
