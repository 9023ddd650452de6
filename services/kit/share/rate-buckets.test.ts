import { describe, expect, test } from "vitest";
import { manualClock } from "#kit/time/clock.ts";
import { createRateBuckets } from "./rate-buckets.ts";

function limiter(maxBuckets = 100) {
  const clock = manualClock();
  const limiter = createRateBuckets({ clock, maxBuckets });
  const take = (requestsPerMinute: number, given: { key?: string; account?: number } = {}) =>
    limiter.take({
      keyId: given.key ?? "key",
      accountId: "account",
      requestsPerMinute,
      accountRequestsPerMinute: given.account ?? 1_000_000,
    });
  return { clock, limiter, take };
}

describe("one key", () => {
  test.each([1, 3, 7, 60, 3_000, 1_000_000])("%i a minute: so many at once, no more", (rate) => {
    const { take } = limiter();
    let admitted = 0;
    // The account's bucket has room for a million, the highest rate of a key.
    while (take(rate).ok) admitted += 1;
    expect(admitted).toBe(rate);
  });

  test("it counts down, and says when all is there again", () => {
    const { take } = limiter();
    expect(take(60)).toEqual({
      ok: true,
      limit: 60,
      remaining: 59,
      resetMs: 1_000,
      retryAfterMs: 0,
    });
    expect(take(60)).toMatchObject({ remaining: 58, resetMs: 2_000 });
  });

  test("a refused request counts nothing and is told when the next one is admitted", async () => {
    const { clock, take } = limiter();
    for (let i = 0; i < 6; i += 1) take(6);
    const refused = { ok: false, limit: 6, remaining: 0, resetMs: 60_000, retryAfterMs: 10_000 };
    expect(take(6)).toEqual(refused);
    expect(take(6)).toEqual(refused);
    await clock.advance(9_999);
    expect(take(6)).toMatchObject({ ok: false, retryAfterMs: 1 });
    await clock.advance(1);
    expect(take(6)).toMatchObject({ ok: true, remaining: 0 });
    expect(take(6)).toMatchObject({ ok: false, retryAfterMs: 10_000 });
  });

  test("it refills evenly, up to its limit and not above", async () => {
    const { clock, take } = limiter();
    for (let i = 0; i < 60; i += 1) take(60);
    await clock.advance(2_500);
    expect([take(60).ok, take(60).ok, take(60).ok]).toEqual([true, true, false]);
    await clock.advance(3_600_000);
    expect(take(60)).toMatchObject({ remaining: 59 });
  });

  test("over ten minutes of asking without pause it admits ten minutes and the first burst", async () => {
    const { clock, take } = limiter();
    let admitted = 0;
    for (let i = 0; i < 6_000; i += 1) {
      if (take(100).ok) admitted += 1;
      await clock.advance(100);
    }
    expect(admitted).toBe(1_099);
  });

  test("a clock that was set gives nothing away and locks no key out", async () => {
    const clock = manualClock();
    const rates = createRateBuckets({ clock, maxBuckets: 10 });
    const key = { keyId: "k", accountId: "a", requestsPerMinute: 2, accountRequestsPerMinute: 10 };
    rates.take(key);
    clock.set(-500_000);
    expect(rates.take(key)).toMatchObject({ ok: true, remaining: 0 });
    expect(rates.take(key).ok).toBe(false);
    clock.set(900_000);
    expect(rates.take(key).ok).toBe(false);
    await clock.advance(30_000);
    expect(rates.take(key).ok).toBe(true);
  });
});

describe("an account", () => {
  test("its keys share its rate, and the tighter bucket is told", () => {
    const { take } = limiter();
    for (let i = 0; i < 6; i += 1) expect(take(6, { key: "a", account: 10 }).ok).toBe(true);
    for (let i = 0; i < 4; i += 1) expect(take(6, { key: "b", account: 10 }).ok).toBe(true);
    expect(take(6, { key: "b", account: 10 })).toMatchObject({
      ok: false,
      limit: 10,
      remaining: 0,
      retryAfterMs: 6_000,
    });
    // The account's refusal took nothing from the key. So the key has two left when the account has room.
    expect(take(6, { key: "c", account: 10 })).toMatchObject({ ok: false, limit: 10 });
  });

  test("a key's refusal takes nothing from its account", () => {
    const { take } = limiter();
    for (let i = 0; i < 50; i += 1) take(2, { key: "a", account: 10 });
    for (let i = 0; i < 8; i += 1) expect(take(9, { key: "b", account: 10 }).ok).toBe(true);
    expect(take(9, { key: "b", account: 10 }).ok).toBe(false);
  });

  test("a key that was given more than its account's rate has it", () => {
    const { take } = limiter();
    let admitted = 0;
    while (take(500, { account: 10 }).ok) admitted += 1;
    expect(admitted).toBe(500);
  });

  test("keys of different rates weigh on it by their own share", () => {
    const { take } = limiter();
    for (let i = 0; i < 250; i += 1) take(500, { key: "fast", account: 10 });
    let admitted = 0;
    while (take(10, { key: "slow", account: 10 }).ok) admitted += 1;
    expect(admitted).toBe(5);
  });
});

describe("memory", () => {
  test("idle buckets are dropped", async () => {
    const { clock, limiter: rates, take } = limiter(1_000);
    for (let i = 0; i < 200; i += 1) take(60, { key: `k${i}` });
    expect(rates.size).toBe(201);
    await clock.advance(60_000);
    for (let i = 0; i < 150; i += 1) take(60, { key: "one" });
    expect(rates.size).toBe(2);
  });

  test("the number of buckets is bounded", () => {
    const { limiter: rates, take } = limiter(10);
    for (let i = 0; i < 500; i += 1) take(60, { key: `k${i}` });
    expect(rates.size).toBe(11);
  });
});

describe("several at once", () => {
  const key = { keyId: "k", accountId: "a", requestsPerMinute: 10, accountRequestsPerMinute: 10 };

  test("as many as both buckets have room for, and the same as one by one", () => {
    const rates = createRateBuckets({ clock: manualClock(), maxBuckets: 10 });
    expect(rates.takeSome(key, 4)).toMatchObject({ ok: true, granted: 4, remaining: 6 });
    expect(rates.takeSome({ ...key, keyId: "other" }, 3)).toMatchObject({ granted: 3 });
    // The account has three left, the key six.
    expect(rates.takeSome(key, 5)).toMatchObject({ ok: true, granted: 3, remaining: 0 });
    expect(rates.takeSome(key, 5)).toMatchObject({ ok: false, granted: 0, retryAfterMs: 6_000 });
  });

  test("what is given back can be taken again, once", () => {
    const rates = createRateBuckets({ clock: manualClock(), maxBuckets: 10 });
    rates.giveBack(key);
    expect(rates.takeSome(key, 20).granted).toBe(10);
    rates.giveBack(key);
    expect([rates.take(key).ok, rates.take(key).ok]).toEqual([true, false]);
  });
});
