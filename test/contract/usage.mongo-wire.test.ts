import { afterEach, beforeEach, expect, test } from "vitest";
import type { Closing, UsageStore } from "../../services/text/store/store.ts";
import { createMongoUsageStore } from "../../services/text/store/store-mongo.ts";
import { textCollections } from "../../services/text/store/store-mongo-docs.ts";
import { describeMongo } from "../support/mongo.ts";
import { type Fate, type MongoWire, openMongoWire } from "../support/mongo-wire.ts";
import { until } from "../support/until.ts";
import { intentOf } from "./usage.suite.ts";

const start = Date.UTC(2026, 0, 15);
const id = "text_00000001";
const slot = { keyId: "key_1", operation: "responses", key: "k" } as const;
const intent = intentOf(1, { idempotency: { key: "k", fingerprint: "f" } });
const charge = { amount: 7n, input: 3, cachedInput: 1, output: 2, estimated: true };
const answer = Buffer.from("{}");
const closings: Record<string, Closing> = {
  settling: { kind: "settling", end: "completed", charge },
  "settling for nothing": {
    kind: "settling",
    end: "failed",
    charge: { ...charge, amount: undefined },
  },
  "settling with an answer": { kind: "settling", end: "completed", charge, answer },
  "settling without its answer": { kind: "settling", end: "completed", charge, answer: "not_kept" },
};
const at = { now: start, dueAt: start + 5_000 };

await describeMongo("usage on a bad wire", (mongo) => {
  let wire: MongoWire;
  let store: UsageStore;
  let other: UsageStore;

  beforeEach(async () => {
    const name = mongo.newName();
    other = createMongoUsageStore(mongo.connect(name));
    await other.prepare();
    wire = await openMongoWire(mongo.url);
    store = createMongoUsageStore(mongo.connect(name, { url: wire.url }));
  });
  afterEach(() => wire[Symbol.asyncDispose]());

  test("an intent whose answer was lost is open, and holds its slot", async () => {
    loseOnce("insert");
    expect(await store.open(intent)).toBe(true);
    expect(await other.open(intentOf(2, { idempotency: { key: "k", fingerprint: "f" } }))).toBe(
      false,
    );
    expect(await other.findByKey(slot, start)).toMatchObject({ requestId: id });
  });

  test("checkpoints", async () => {
    await other.open(intent);
    loseOnce("update");
    const seen = { inputTokens: 20, outputTokens: 5, leaseUntil: start + 2 };
    expect(await store.checkpoint(id, intent.owner, seen)).toBe(true);
    expect(await other.find(id)).toMatchObject(seen);
  });

  test.each(Object.entries(closings))("who closed (%s) knows that he did", async (_, closing) => {
    await other.open(intent);
    loseOnce("update");
    expect(await store.close(id, { owner: intent.owner }, closing, at)).toBe(true);
    const late = { leaseOverAt: start + 60_000 };
    expect(await other.close(id, late, closing, { ...at, now: start + 1 })).toBe(false);
    expect(await other.find(id)).toMatchObject({ status: closing.kind, closedAt: start });
  });

  test("who was beaten to it while his own was under way knows that too", async () => {
    await other.open(intent);
    let isFirst = true;
    wire.rule = async (command) => {
      if (!isFirst || !command.update) return "pass";
      isFirst = false;
      const theirs = { kind: "settling", end: "lost", charge } as const;
      await other.close(id, { owner: intent.owner }, theirs, at);
      return "lost request";
    };
    const ours = { kind: "settling", end: "completed", charge } as const;
    expect(await store.close(id, { owner: intent.owner }, ours, at)).toBe(false);
    expect(await other.find(id)).toMatchObject({ end: "lost" });
  });

  test.each(["update", "delete"])("finishing, its %s without an answer", async (command) => {
    const closing = closings[command === "update" ? "settling with an answer" : "settling"];
    await other.open(intent);
    if (closing) await other.close(id, { owner: intent.owner }, closing, at);
    loseOnce(command);
    await store.finish(id, start + 100, 7n);
    const found = await other.find(id);
    if (command === "update") expect(found).toMatchObject({ status: "closed" });
    else expect(found).toBeUndefined();
  });

  test("an intent whose caller leaves while another one of its slot is under way is not opened", async () => {
    const held = Promise.withResolvers<Fate>();
    let inserts = 0;
    wire.rule = (command) => {
      if (command.insert !== textCollections.usage) return "pass";
      return inserts++ === 0 ? held.promise : "pass";
    };
    const leave = new AbortController();
    const idempotency = { key: slot.key, fingerprint: "f" };
    const [first, second] = [intentOf(1, { idempotency }), intentOf(2, { idempotency })];
    const opening = store.open(first);
    await until("its insert", () => inserts === 1);
    const left = store.open(second, leave.signal);
    leave.abort(new Error("the caller has left"));
    await expect(left).rejects.toThrow("the caller has left");
    held.resolve("pass");
    expect(await opening).toBe(true);
    expect(inserts).toBe(1);
    expect(await other.find(second.requestId)).toBeUndefined();
  });

  test("many at once whose one answer was lost: each is done, and knows it", async () => {
    const intents = Array.from({ length: 20 }, (_, i) => intentOf(i + 1));
    const each = <T>(step: (id: string) => Promise<T>) =>
      Promise.all(intents.map(({ requestId }) => step(requestId)));
    const all = intents.map(() => true);
    loseOnce("insert");
    expect(await Promise.all(intents.map((one) => store.open(one)))).toEqual(all);
    const seen = { inputTokens: 20, outputTokens: 5, leaseUntil: start + 2 };
    loseOnce("update");
    expect(await each((one) => store.checkpoint(one, intent.owner, seen))).toEqual(all);
    const closing = { kind: "settling", end: "completed", charge } as const;
    loseOnce("update");
    expect(await each((one) => store.close(one, { owner: intent.owner }, closing, at))).toEqual(
      all,
    );
    loseOnce("delete");
    await each((one) => store.finish(one, start, 7n));
    expect((await each((one) => other.find(one))).filter(Boolean)).toEqual([]);
  });

  test("makers of opaque state are remembered, all of them", async () => {
    const makers = Array.from({ length: 30 }, (_, i) => ({
      hash: `h${i}`,
      accountId: "acct_1",
      upstream: "up",
    }));
    loseOnce("insert");
    await store.rememberMakers(makers, start + 10);
    const hashes = makers.map(({ hash }) => hash);
    expect(await other.findMakers(hashes, start)).toHaveLength(30);
  });

  function loseOnce(command: string): void {
    let isLost = false;
    const own = Object.values<unknown>(textCollections);
    wire.rule = (sent) => {
      if (isLost || !own.includes(sent[command])) return "pass";
      isLost = true;
      return "lost reply";
    };
  }
});
