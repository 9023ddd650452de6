import { describe, expect, test } from "vitest";
import { maxKeptAnswerBytes } from "../../services/text/base/limits.ts";
import type { Charge, Intent, UsageStore } from "../../services/text/store/store.ts";

/** Two clients of one new, empty store. */
export type UsageStores = () => Promise<[UsageStore, UsageStore]>;

const start = Date.UTC(2026, 0, 15);
const lease = start + 30_000;
const charge: Charge = { amount: 7n, input: 3, cachedInput: 1, output: 2, estimated: true };
const free: Charge = { ...charge, amount: undefined };
const answer = Buffer.from('{"answer":true}');

/** An intent with a new id. */
export function intentOf(number: number, more: Partial<Intent> = {}): Intent {
  return {
    requestId: `text_${String(number).padStart(8, "0")}`,
    accountId: "acct_1",
    keyId: "key_1",
    operation: "responses",
    modelId: "chat-1",
    catalogVersion: "v1",
    // Above 2^53, where a float would round.
    price: { input: 9_007_199_254_740_993n, cachedInput: 2n, output: 3n },
    bounds: { input: 100, output: 50 },
    holdAmount: 9_007_199_254_740_995n,
    holdCheckAt: start + 60_000,
    owner: "text_me",
    openedAt: start,
    leaseUntil: lease,
    inputTokens: 11,
    outputTokens: 3,
    ...more,
  };
}

const keyed = (number: number, more: Partial<Intent> = {}) =>
  intentOf(number, { idempotency: { key: "k", fingerprint: "f1" }, ...more });
const slot = { keyId: "key_1", operation: "responses", key: "k" } as const;
const settling = { kind: "settling", end: "completed", charge } as const;
const me = { owner: "text_me" };
const at = (now: number, dueAt = now + 5_000) => ({ now, dueAt });

/** The rules for every {@link UsageStore}. */
export function usageStoreContract(connect: UsageStores): void {
  describe("intents", () => {
    test("one is found as it was written, from any client", async () => {
      const [a, b] = await connect();
      const intent = keyed(1);
      expect(await a.open(intent)).toBe(true);
      expect(await b.find(intent.requestId)).toEqual({
        ...intent,
        status: "open",
        dispatched: true,
      });
      expect(await b.find("text_00000099")).toBeUndefined();
    });
    test("all prices are kept as they were when it was accepted", async () => {
      const [a, b] = await connect();
      const row = { input: 9_007_199_254_740_993n, output: 3n, cacheWriteLong: 0n };
      const list = {
        ...row,
        longInput: [{ aboveInputTokens: 200_000n, ...row }],
        servedTiers: { priority: 200n },
        toolCalls: { web_search: 10_000n },
      };
      const more = { list, asksLongCache: true, upstreamCost: row } as const;
      const price = { input: row.input, cachedInput: 2n, output: 3n, ...more };
      const bounds = { input: 100, output: 50, countedAudio: 7, countedImages: 8 };
      const intent = intentOf(1, { price, bounds });
      await a.open(intent);
      expect(await b.find(intent.requestId)).toMatchObject({ price, bounds });
      const classes = { cacheWrite: 1, audioOutput: 1, toolCalls: { web_search: 2 } };
      const cost = { upstreamCost: 9_007_199_254_740_993n, upstreamCostSource: "catalog" } as const;
      const dear: Charge = { ...charge, ...classes, ...cost, servedTier: "priority" };
      await a.close(intent.requestId, me, { ...settling, charge: dear }, at(start));
      expect((await b.find(intent.requestId))?.charge).toEqual(dear);
    });
    test("a repeat is the same one", async () => {
      const [a, b] = await connect();
      expect(await a.open(keyed(1))).toBe(true);
      expect(await b.open(keyed(1))).toBe(true);
    });
    test("of many under one idempotency key exactly one is opened", async () => {
      const [a, b] = await connect();
      const opened = await Promise.all(
        Array.from({ length: 20 }, (_, n) => (n % 2 ? a : b).open(keyed(n))),
      );
      expect(opened.filter(Boolean)).toHaveLength(1);
      expect((await b.findByKey(slot, start))?.answer).toBeUndefined();
    });
    test("slots are told apart by key id, operation and key; no key is no slot", async () => {
      const [a] = await connect();
      expect(await a.open(keyed(1))).toBe(true);
      expect(await a.open(keyed(2, { keyId: "key_2" }))).toBe(true);
      expect(await a.open(keyed(3, { operation: "chat" }))).toBe(true);
      expect(await a.open(keyed(4, { idempotency: { key: "K", fingerprint: "f1" } }))).toBe(true);
      expect(await a.open(intentOf(5))).toBe(true);
      expect(await a.open(intentOf(6))).toBe(true);
      expect((await a.findByKey({ ...slot, operation: "chat" }, start))?.requestId).toBe(
        "text_00000003",
      );
    });
    test("withdrawn: gone, and its slot free; never once it is closed", async () => {
      const [a] = await connect();
      await a.open(keyed(1));
      await a.withdraw("text_00000001", "text_other");
      expect(await a.find("text_00000001")).toBeDefined();
      await a.withdraw("text_00000001", "text_me");
      expect(await a.find("text_00000001")).toBeUndefined();
      expect(await a.open(keyed(2))).toBe(true);
      await a.close("text_00000002", me, settling, at(start));
      await a.withdraw("text_00000002", "text_me");
      expect(await a.find("text_00000002")).toBeDefined();
    });
  });

  describe("while it runs", () => {
    test("checkpoints are the owner's", async () => {
      const [a] = await connect();
      await a.open(intentOf(1));
      const id = "text_00000001";
      const seen = { inputTokens: 20, outputTokens: 5, leaseUntil: lease + 9 };
      expect(await a.checkpoint(id, "text_other", seen)).toBe(false);
      expect(await a.checkpoint(id, "text_me", seen)).toBe(true);
      expect(await a.find(id)).toMatchObject(seen);
      expect(await a.checkpoint("text_00000009", "text_me", seen)).toBe(false);
    });
    test("what the record will say is kept until more is known", async () => {
      const [a, b] = await connect();
      const begun = { callId: "req_1", streamed: true };
      const told = { ...begun, upstream: "up", answerId: "resp_1", firstOutputAt: start };
      await a.open(keyed(1, { told: begun }));
      const id = "text_00000001";
      const seen = { inputTokens: 20, outputTokens: 5, leaseUntil: lease };
      expect((await b.find(id))?.told).toEqual(begun);
      expect(await b.findByKey(slot, start)).not.toHaveProperty("answerId");
      await a.checkpoint(id, "text_me", { ...seen, told });
      expect((await b.find(id))?.told).toEqual(told);
      expect((await b.findByKey(slot, start))?.answerId).toBe("resp_1");
      await a.checkpoint(id, "text_me", seen);
      expect((await b.find(id))?.told).toEqual(told);
      const ended = { ...told, finishReason: "stop" };
      await a.close(id, me, { ...settling, told: ended }, at(start));
      expect((await b.find(id))?.told).toEqual(ended);
    });
    test("a row without it is an older release's", async () => {
      const [a, b] = await connect();
      await a.open(intentOf(1));
      expect((await b.find("text_00000001"))?.told).toBeUndefined();
      await a.close("text_00000001", me, settling, at(start));
      expect((await b.find("text_00000001"))?.told).toBeUndefined();
    });
    test("of a closed request nothing can be seen", async () => {
      const [a] = await connect();
      await a.open(intentOf(1));
      const id = "text_00000001";
      await a.close(id, me, settling, at(start));
      const seen = { inputTokens: 20, outputTokens: 5, leaseUntil: lease };
      expect(await a.checkpoint(id, "text_me", seen)).toBe(false);
    });
  });

  describe("closing", () => {
    test("there is one closer, of all that try", async () => {
      const [a, b] = await connect();
      await a.open(intentOf(1));
      const id = "text_00000001";
      const free = { ...settling, charge: { ...charge, amount: undefined } };
      const tries = await Promise.all([
        a.close(id, me, settling, at(lease)),
        b.close(id, { leaseOverAt: lease }, free, at(lease)),
        a.close(id, me, free, at(lease)),
      ]);
      expect(tries.filter(Boolean)).toHaveLength(1);
    });
    test("what is charged is found again; others take it up when it is due", async () => {
      const [a, b] = await connect();
      await a.open(intentOf(1));
      await a.close("text_00000001", me, settling, at(start));
      expect(await b.find("text_00000001")).toMatchObject({
        status: "settling",
        charge,
        end: "completed",
        closedAt: start,
      });
      expect(await b.due(start + 4_999, 10)).toEqual([]);
      expect(await b.due(start + 5_000, 10)).toHaveLength(1);
      await b.defer("text_00000001", start + 9_000);
      expect(await b.due(start + 8_999, 10)).toEqual([]);
      await b.finish("text_00000001", start + 86_400_000, 7n);
      expect(await b.find("text_00000001")).toBeUndefined();
    });
    test("the owner closes at any time, others past the lease alone", async () => {
      const [a] = await connect();
      await a.open(intentOf(1));
      const early = { leaseOverAt: lease - 1 };
      expect(await a.close("text_00000001", early, settling, at(lease - 1))).toBe(false);
      expect(await a.close("text_00000001", { owner: "x" }, settling, at(start))).toBe(false);
      expect(await a.due(lease - 1, 10)).toEqual([]);
      expect(await a.due(lease, 10)).toHaveLength(1);
      const late = { leaseOverAt: lease };
      expect(await a.close("text_00000001", late, settling, at(lease))).toBe(true);
    });
    test("what a clock that was ahead has put off is brought forward; its owner goes on", async () => {
      const [a, b] = await connect();
      await a.open(intentOf(1, { leaseUntil: start + 3 * 3_600_000 }));
      await b.bringForward(start, start + 1_000);
      expect(await b.due(start + 1_000, 10)).toHaveLength(1);
      const seen = { inputTokens: 1, outputTokens: 1, leaseUntil: start + 31_000 };
      expect(await a.checkpoint("text_00000001", me.owner, seen)).toBe(true);
    });
    test("what runs under a key is finished only once it is closed", async () => {
      const [a] = await connect();
      await a.open(keyed(1));
      await a.finish("text_00000001", start, 7n);
      await a.defer("text_00000001", start);
      expect(await a.find("text_00000001")).toMatchObject({ status: "open", leaseUntil: lease });
    });
    test("what runs without a key is gone once it is finished: its charge is drawn", async () => {
      const [a, b] = await connect();
      await a.open(intentOf(1));
      await a.finish("text_00000001", start, 7n);
      expect(await b.find("text_00000001")).toBeUndefined();
      const seen = { inputTokens: 20, outputTokens: 5, leaseUntil: lease };
      expect(await a.checkpoint("text_00000001", me.owner, seen)).toBe(false);
    });
    test("an answer that is kept costs what was drawn", async () => {
      const [a, b] = await connect();
      await a.open(keyed(1));
      await a.close("text_00000001", me, { ...settling, answer }, at(start));
      await a.finish("text_00000001", start + 9, 9_007_199_254_740_993n);
      expect((await b.findByKey(slot, start))?.cost).toBe(9_007_199_254_740_993n);
    });
    test("what is due comes in order, and no more than asked for", async () => {
      const [a] = await connect();
      for (const n of [3, 1, 2]) await a.open(intentOf(n, { leaseUntil: start + n }));
      const due = await a.due(start + 10, 2);
      expect(due.map((one) => one.requestId)).toEqual(["text_00000001", "text_00000002"]);
    });
  });

  describe("many at once", () => {
    const numbers = Array.from({ length: 40 }, (_, i) => i + 1);
    const idOf = (number: number) => intentOf(number).requestId;
    /** The transition does not fit every fourth row. */
    const fits = (number: number) => number % 4 !== 0;

    test("each is opened for itself", async () => {
      const [a, b] = await connect();
      await b.open(intentOf(99, { idempotency: { key: "k", fingerprint: "f1" } }));
      await b.open(intentOf(1));
      const intents = numbers.map((number) => (fits(number) ? intentOf(number) : keyed(number)));
      const opened = await Promise.all(intents.map((intent) => a.open(intent)));
      expect(opened).toEqual(numbers.map(fits));
      expect(await b.due(lease, 100)).toHaveLength(opened.filter(Boolean).length + 1);
    });
    test("each is seen and closed for itself", async () => {
      const [a, b] = await connect();
      const owner = (number: number) => (fits(number) ? "text_me" : "text_you");
      const open = numbers.map((number) => a.open(intentOf(number, { owner: owner(number) })));
      await Promise.all(open);
      const seen = { inputTokens: 20, outputTokens: 5, leaseUntil: lease };
      const checked = numbers.map((number) => a.checkpoint(idOf(number), "text_me", seen));
      expect(await Promise.all(checked)).toEqual(numbers.map(fits));
      const closed = numbers.map((number) => a.close(idOf(number), me, settling, at(start)));
      expect(await Promise.all(closed)).toEqual(numbers.map(fits));
      for (const number of numbers) {
        expect(await b.find(idOf(number))).toMatchObject(
          fits(number)
            ? { outputTokens: 5, status: "settling", charge }
            : { outputTokens: 3, status: "open" },
        );
      }
    });
    test("of two that close alike, one is the closer", async () => {
      const [a] = await connect();
      await Promise.all(numbers.map((number) => a.open(intentOf(number))));
      const close = (number: number) => a.close(idOf(number), me, settling, at(start));
      const closed = await Promise.all([...numbers, ...numbers].map(close));
      expect(closed.filter(Boolean)).toHaveLength(numbers.length);
    });
    test("each is finished for itself: with an answer it stays, what runs is left alone", async () => {
      const [a, b] = await connect();
      const stateOf = (number: number) => ["running", "answered", "over"][number % 3];
      for (const number of numbers) {
        const slot = { idempotency: { key: `k${number}`, fingerprint: "f" } };
        await a.open(intentOf(number, stateOf(number) === "over" ? {} : slot));
      }
      const close = (number: number) => {
        const kept = stateOf(number) === "answered" ? { answer } : {};
        return a.close(idOf(number), me, { ...settling, ...kept }, at(start));
      };
      await Promise.all(numbers.filter((number) => stateOf(number) !== "running").map(close));
      await Promise.all(
        numbers.map((number) => a.finish(idOf(number), start + 1_000 + number, 7n)),
      );
      for (const number of numbers) {
        const status = { running: "open", answered: "closed" }[stateOf(number) ?? ""];
        expect((await b.find(idOf(number)))?.status).toBe(status);
      }
    });
  });

  describe("answers", () => {
    test("without one the slot is free at once, with one it is kept to its time", async () => {
      const [a, b] = await connect();
      await a.open(keyed(1));
      await a.close("text_00000001", me, settling, at(start));
      expect(await b.findByKey(slot, start)).toBeUndefined();
      await a.finish("text_00000001", start, 7n);
      expect(await b.open(keyed(2))).toBe(true);
      await b.close("text_00000002", me, { ...settling, answer, ignored: ["a%20b"] }, at(start));
      const kept = {
        ignored: ["a%20b"],
        requestId: "text_00000002",
        fingerprint: "f1",
        answer: expect.any(Uint8Array),
        cost: 7n,
      };
      const found = await a.findByKey(slot, start);
      expect(found).toEqual(kept);
      expect(Buffer.from((found?.answer as Uint8Array) ?? []).toString()).toBe(answer.toString());
      expect(await a.open(keyed(3))).toBe(false);
      const until = start + 86_400_000;
      await a.finish("text_00000002", until, 7n);
      expect(await b.findByKey(slot, until - 1)).toEqual(kept);
      expect(await b.findByKey(slot, until)).toBeUndefined();
      expect(await b.due(until, 10)).toEqual([]);
      expect(await a.find("text_00000002")).toMatchObject({ status: "closed", charge });
    });
    test("the largest that is kept comes back whole", async () => {
      const [a, b] = await connect();
      await a.open(keyed(1));
      const large = Buffer.alloc(maxKeptAnswerBytes, "sea ");
      expect(await a.close("text_00000001", me, { ...settling, answer: large }, at(start))).toBe(
        true,
      );
      const found = await b.findByKey(slot, start);
      expect(Buffer.compare(found?.answer as Uint8Array, large)).toBe(0);
    });
    test.each([
      ["settling", { ...settling, answer: "not_kept" }, 7n],
      ["settling for nothing", { ...settling, charge: free, answer: "not_kept" }, 0n],
    ] as const)("one that is not kept holds its slot as long: %s", async (_, closing, cost) => {
      const [a, b] = await connect();
      await a.open(keyed(1));
      expect(await b.findByKey(slot, start)).toMatchObject({ answer: undefined, cost: undefined });
      expect(await a.close("text_00000001", me, closing, at(start))).toBe(true);
      const record = { requestId: "text_00000001", fingerprint: "f1", answer: "not_kept", cost };
      expect(await b.findByKey(slot, start)).toEqual(record);
      expect(await b.open(keyed(2))).toBe(false);
      const until = start + 86_400_000;
      await a.finish("text_00000001", until, cost);
      expect(await b.findByKey(slot, until - 1)).toEqual(record);
      expect(await b.open(keyed(2, { openedAt: until - 1 }))).toBe(false);
      expect(await b.findByKey(slot, until)).toBeUndefined();
      expect(await b.open(keyed(3, { openedAt: until }))).toBe(true);
    });
    test("one whose time is over takes no slot, forgotten or not", async () => {
      const [a] = await connect();
      await a.open(keyed(1));
      await a.close("text_00000001", me, { ...settling, answer }, at(start));
      await a.finish("text_00000001", start + 100, 7n);
      expect(await a.open(keyed(2, { openedAt: start + 99 }))).toBe(false);
      expect(await a.open(keyed(2, { openedAt: start + 100 }))).toBe(true);
      expect((await a.findByKey(slot, start + 100))?.answer).toBeUndefined();
    });
    test("forgetting takes what is over, some at a time, and nothing else", async () => {
      const [a] = await connect();
      for (const n of [1, 2, 3]) {
        const idempotency = { key: `k${n}`, fingerprint: "f" };
        await a.open(intentOf(n, { idempotency }));
        await a.close(`text_0000000${n}`, me, { ...settling, answer }, at(start));
        await a.finish(`text_0000000${n}`, start + n, 7n);
      }
      await a.open(intentOf(4, { leaseUntil: start }));
      expect(await a.forget(start + 2, 1)).toBe(1);
      expect(await a.forget(start + 2, 10)).toBe(1);
      expect(await a.forget(start + 2, 10)).toBe(0);
      expect(await a.find("text_00000003")).toBeDefined();
      expect(await a.find("text_00000004")).toBeDefined();
    });
  });
}
