import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { RatedKey, RateVerdict } from "#kit/share/rate-buckets.ts";
import { createAuthWorld, until } from "../../test/contract/keys.world.ts";
import { admissionLimits } from "./limits.ts";
import {
  createOwnRates,
  createSharedRates,
  type RateLimiter,
  rateHeaders,
} from "./rate-limiter.ts";

let world: Awaited<ReturnType<typeof createAuthWorld>>;
let faults: unknown[];
beforeEach(async () => {
  world = await createAuthWorld();
  faults = [];
});
afterEach(() => world[Symbol.asyncDispose]());

const key = (requestsPerMinute: number, keyId = "key_1"): RatedKey => ({
  keyId,
  accountId: "acct_1",
  requestsPerMinute,
  accountRequestsPerMinute: 1_000_000,
});
const deps = () => ({
  auth: world.mesh,
  clock: world.clock,
  limits: admissionLimits,
  events: { rateUnshared: (error: unknown) => void faults.push(error) },
});
const gateways = (n: number): RateLimiter[] =>
  Array.from({ length: n }, () => createSharedRates(deps()));
const calls = () => world.wire.calls("LeaseRequests");

/** Uses the gateways in turn, one request after the other. Answers how many were admitted. */
async function admitted(among: readonly RateLimiter[], of: RatedKey, requests: number) {
  let count = 0;
  for (let n = 0; n < requests; n++) {
    if ((await among[n % among.length]?.take(of))?.ok) count++;
  }
  return count;
}

describe("the rate of several gateways", () => {
  test.each([1, 7, 60])("%i a minute: exactly so many over all of them", async (limit) => {
    expect(await admitted(gateways(3), key(limit), 4 * limit)).toBe(limit);
  });

  test("above: the limit, less what a second's worth at the others may hold", async () => {
    const limit = 6_000;
    const all = await admitted(gateways(3), key(limit), 2 * limit);
    expect(all).toBeLessThanOrEqual(limit);
    expect(all).toBeGreaterThanOrEqual(limit - 3 * (limit / 60));
    // It does not matter which gateway gets the requests: leased ones serve the caller that asks there.
    expect(calls()).toBeLessThan(limit / 10);
  });

  test("a burst is answered with few calls, and no more than the limit of it", async () => {
    const [one, other] = gateways(2) as [RateLimiter, RateLimiter];
    const taken = Array.from({ length: 100 }, (_, n) => (n % 2 ? one : other).take(key(20)));
    const verdicts = await Promise.all(taken);
    expect(verdicts.filter(({ ok }) => ok)).toHaveLength(20);
    for (const told of verdicts.filter(({ ok }) => !ok)) {
      expect(told).toMatchObject({ limit: 20, remaining: 0, retryAfterMs: 3_000 });
    }
    expect(calls()).toBeLessThan(12);
  });

  test("over a minute of haste it is the burst and what has drained, within the stated error", async () => {
    const all = gateways(2);
    const limit = 600;
    let count = await admitted(all, key(limit), 2 * limit);
    for (let second = 0; second < 60; second++) {
      await world.clock.advance(1_000);
      count += await admitted(all, key(limit), 40);
    }
    expect(Math.abs(count - 2 * limit)).toBeLessThanOrEqual((2 * limit) / 60);
  });

  test("keys of one account share its rate across gateways", async () => {
    const all = gateways(2);
    const of = (keyId: string) => ({ ...key(10, keyId), accountRequestsPerMinute: 10 });
    expect(await admitted(all, of("key_1"), 6)).toBe(6);
    expect(await admitted(all, of("key_2"), 10)).toBe(4);
  });
});

describe("calls", () => {
  test("a key in steady use costs about one a second, a quiet one holds no more than it uses", async () => {
    const [gateway] = gateways(1) as [RateLimiter];
    for (let second = 0; second < 20; second++) {
      await admitted([gateway], key(6_000), 100);
      await world.clock.advance(1_000);
    }
    expect(calls()).toBeLessThan(50);
    const before = calls();
    for (let n = 0; n < 10; n++) {
      await gateway.take(key(6_000, "quiet"));
      await world.clock.advance(3_000);
    }
    expect(calls() - before).toBe(10);
    const [other] = gateways(1) as [RateLimiter];
    expect(await other.take(key(6_000, "quiet"))).toMatchObject({ remaining: 5_999 });
  });

  test("a caller that goes on after a refusal costs one a second", async () => {
    const [gateway, other] = gateways(2) as [RateLimiter, RateLimiter];
    // All of it at the other gateway. This one's own count would admit.
    await admitted([other], key(60), 60);
    const before = calls();
    for (let n = 0; n < 50; n++) expect((await gateway.take(key(60))).ok).toBe(false);
    expect(calls() - before).toBe(1);
    await world.clock.advance(1_000);
    expect(await gateway.take(key(60))).toMatchObject({ ok: true, remaining: 0 });
  });

  test("a verdict from what is held is at hand, and counts down", async () => {
    const [gateway] = gateways(1) as [RateLimiter];
    const told: number[] = [];
    let atHand = 0;
    for (let n = 0; n < 50; n++) {
      const taken = gateway.take(key(6_000));
      if (!(taken instanceof Promise)) atHand++;
      told.push((await taken).remaining);
    }
    expect(told).toEqual(Array.from({ length: 50 }, (_, n) => 5_999 - n));
    expect(atHand).toBeGreaterThan(40);
  });
});

describe("while auth is away", () => {
  test("each gateway counts for itself, and asks again after a second", async () => {
    const [gateway] = gateways(1) as [RateLimiter];
    world.wire.cut();
    expect(await admitted([gateway], key(5), 20)).toBe(5);
    expect(calls()).toBe(1);
    expect(faults).toHaveLength(1);
    world.wire.mend();
    await world.clock.advance(12_000);
    expect((await gateway.take(key(5))).ok).toBe(true);
    expect(calls()).toBe(2);
  });

  test("what is held is used up", async () => {
    const [gateway] = gateways(1) as [RateLimiter];
    await admitted([gateway], key(6_000), 40);
    world.wire.cut();
    expect((await admitted([gateway], key(6_000), 10)) > 0).toBe(true);
    expect(faults.length).toBeLessThanOrEqual(1);
  });

  test("those who wait are let through together", async () => {
    const [gateway] = gateways(1) as [RateLimiter];
    world.wire.hold("LeaseRequests");
    const waiting: Promise<RateVerdict>[] = Array.from({ length: 5 }, async () =>
      gateway.take(key(60)),
    );
    await until(() => world.wire.held() === 1);
    world.wire.release();
    expect((await Promise.all(waiting)).every(({ ok }) => ok)).toBe(true);
    expect(calls()).toBeLessThanOrEqual(2);
  });
});

test("the edge of one process asks no other replica", async () => {
  const rates = createOwnRates(deps());
  expect(await admitted([rates], key(5), 20)).toBe(5);
  expect(calls()).toBe(0);
});

test("what auth is asked must make sense", async () => {
  const right = { ...key(5), wanted: 1 };
  await world.mesh.leaseRequests(right);
  for (const wrong of [
    { keyId: "" },
    { accountId: "a b" },
    { requestsPerMinute: 0 },
    { accountRequestsPerMinute: 1_000_001 },
    { wanted: -1 },
  ]) {
    await expect(world.mesh.leaseRequests({ ...right, ...wrong })).rejects.toThrow(/may not have/);
  }
});

test.each([
  [0, "0ms"],
  [0.06, "1ms"],
  [12, "12ms"],
  [999.1, "1s"],
  [6_500, "6.5s"],
  [59_999, "59.999s"],
  [60_000, "1m0s"],
  [61_250, "1m1.25s"],
])("%d ms until reset is %s", (resetMs, text) => {
  const verdict = { ok: true, limit: 60, remaining: 3, resetMs, retryAfterMs: 0 };
  expect(rateHeaders(verdict)).toEqual({
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-remaining-requests": "3",
    "x-ratelimit-reset-requests": text,
  });
});
