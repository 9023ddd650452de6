import { describe, expect, test } from "vitest";
import type { Review, UsageStore } from "../../services/text/store/store.ts";
import { intentOf, type UsageStores } from "./usage.suite.ts";

const start = Date.UTC(2026, 0, 15);

/** The rules for every {@link UsageStore} about data beside requests: answers and their bytes, reviews, makers of opaque state. */
export function keptBesideContract(connect: UsageStores): void {
  const answer = Buffer.from('{"answer":true}');
  const charge = { amount: 7n, input: 3, cachedInput: 1, output: 2, estimated: true };
  const settling = { kind: "settling", end: "completed", charge, answer } as const;
  test("of some keys are erased, and nothing that runs", async () => {
    const [a, b] = await connect();
    for (const [n, keyId] of [
      [1, "key_1"],
      [2, "key_2"],
      [3, "key_3"],
      [4, "key_1"],
    ] as const) {
      const idempotency = { key: `k${n}`, fingerprint: "f1" };
      await a.open(intentOf(n, { idempotency, keyId }));
      if (n === 4) continue;
      await a.close(`text_0000000${n}`, { owner: "text_me" }, settling, {
        now: start,
        dueAt: start + 5_000,
      });
      await a.finish(`text_0000000${n}`, start + 100, 7n);
    }
    expect(await b.eraseKept(["key_1", "key_2"], 1)).toBe(1);
    expect(await b.eraseKept(["key_1", "key_2"], 9)).toBe(1);
    expect(await b.eraseKept(["key_1", "key_2"], 9)).toBe(0);
    const statuses = [1, 2, 3, 4].map(async (n) => (await a.find(`text_0000000${n}`))?.status);
    expect(await Promise.all(statuses)).toEqual([undefined, undefined, "closed", "open"]);
  });

  describe("bytes of kept answers", () => {
    const hour = 3_600_000;
    const keep = (store: UsageStore, bytes: number, now = start, accountId = "acct_1") =>
      store.countKept(accountId, bytes, { now, until: now + hour, most: 1_000 });

    test("are counted an account, to the bound and not past it", async () => {
      const [a, b] = await connect();
      expect(await keep(a, 600)).toBe(true);
      expect(await keep(b, 401)).toBe(false);
      expect(await keep(b, 400)).toBe(true);
      expect(await keep(a, 1)).toBe(false);
      expect(await keep(a, 1_000, start, "acct_2")).toBe(true);
      expect(await keep(a, 1_001, start, "acct_3")).toBe(false);
      expect(await keep(a, 1_000, start, "acct_3")).toBe(true);
    });
    test("count until their time is over, those of each hour for themselves", async () => {
      const [a, b] = await connect();
      expect(await keep(a, 500)).toBe(true);
      expect(await keep(a, 500, start + 1)).toBe(true);
      expect(await keep(b, 500, start + hour - 1)).toBe(false);
      expect(await keep(b, 500, start + hour)).toBe(true);
      expect(await keep(b, 1, start + hour)).toBe(false);
      expect(await keep(b, 1_000, start + 3 * hour)).toBe(true);
      expect(await keep(b, 1, start + 3 * hour)).toBe(false);
    });
    test("of many at once no more are kept than fit", async () => {
      const [a, b] = await connect();
      const tries = await Promise.all(
        Array.from({ length: 40 }, (_, n) => keep(n % 2 ? a : b, 100)),
      );
      const kept = tries.filter(Boolean).length;
      expect(kept).toBeLessThanOrEqual(10);
      // The bytes of refused answers do not count.
      const more = await Promise.all(
        Array.from({ length: 10 - kept }, () => 100).map((n) => keep(a, n)),
      );
      expect(more.every(Boolean)).toBe(true);
      expect(await keep(a, 1)).toBe(false);
    });
    test("that a clock which was ahead has counted do not count", async () => {
      const [a, b] = await connect();
      expect(await keep(a, 1_000, start + 48 * hour)).toBe(true);
      expect(await keep(b, 1_000)).toBe(true);
      expect(await keep(a, 1)).toBe(false);
    });
    test("are forgotten when their time is over", async () => {
      const [a, b] = await connect();
      await keep(a, 10);
      await keep(a, 10, start + 1, "acct_2");
      expect(await b.forget(start + hour - 1, 10)).toBe(0);
      expect(await b.forget(start + hour, 10)).toBe(1);
      expect(await b.forget(start + hour + 1, 10)).toBe(1);
    });
  });

  describe("reviews", () => {
    const reviewOf = (n: number, accountId: string): Review => ({
      requestId: `text_0000000${n}`,
      accountId,
      modelId: "chat-1",
      reported: '{"inputTokens":-1}',
      charged: 9_007_199_254_740_993n,
      at: start + n,
    });
    test("are shown until their time is over, oldest first, by account", async () => {
      const [a, b] = await connect();
      for (const [n, accountId] of [
        [1, "acct_1"],
        [2, "acct_2"],
        [3, "acct_1"],
      ] as const) {
        await a.noteReview(reviewOf(n, accountId), start + 100 + n);
      }
      await b.noteReview({ ...reviewOf(1, "acct_1"), charged: 0n }, start + 109);
      const ids = async (account?: string, limit = 10) =>
        (await b.reviews(account, limit)).map((one) => one.requestId.slice(-1));
      expect(await ids()).toEqual(["1", "2", "3"]);
      expect(await ids("acct_1")).toEqual(["1", "3"]);
      expect(await ids(undefined, 1)).toEqual(["1"]);
      expect(await b.reviews("acct_2", 10)).toEqual([reviewOf(2, "acct_2")]);
      expect((await b.reviews("acct_1", 10))[0]).toEqual(reviewOf(1, "acct_1"));
      expect(await a.forget(start + 102, 10)).toBe(2);
      expect(await ids()).toEqual(["3"]);
    });
  });

  describe("makers of opaque state", () => {
    test("are found by hash for every account, until they are forgotten", async () => {
      const [a, b] = await connect();
      const one = { hash: "h1", accountId: "acct_1", upstream: "up" };
      const two = { hash: "h1", accountId: "acct_2", upstream: "other" };
      await a.rememberMakers([one, { ...one, hash: "h2" }], start + 100);
      await a.rememberMakers([two], start + 200);
      const found = await b.findMakers(["h1", "h9"], start);
      expect(found.sort((x, y) => x.accountId.localeCompare(y.accountId))).toEqual([one, two]);
      expect(await b.findMakers(["h1"], start + 100)).toEqual([two]);
      expect(await b.findMakers([], start)).toEqual([]);
      await b.rememberMakers([one], start + 300);
      expect(await b.findMakers(["h1"], start + 299)).toEqual([one]);
      expect(await b.forget(start + 250, 10)).toBe(2);
      expect(await a.findMakers(["h1", "h2"], start)).toEqual([one]);
    });
    test("thousands at once", async () => {
      const [a] = await connect();
      const makers = Array.from({ length: 5_000 }, (_, n) => ({
        hash: `h${n}`,
        accountId: "acct_1",
        upstream: "up",
      }));
      await a.rememberMakers(makers, start + 1);
      const hashes = makers.map((maker) => maker.hash);
      expect(await a.findMakers(hashes, start)).toHaveLength(5_000);
    });
  });
}
