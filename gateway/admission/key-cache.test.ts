import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { manualClock } from "#kit/time/clock.ts";
import { createAuthWorld, until } from "../../test/contract/keys.world.ts";
import { createAdmissionEvents } from "./events.ts";
import { type AdmittedKey, createKeyCache, type KeyCache } from "./key-cache.ts";
import { type AdmissionLimits, admissionLimits } from "./limits.ts";

type World = Awaited<ReturnType<typeof createAuthWorld>>;
let world: World;
let caches: KeyCache[] = [];
beforeEach(async () => {
  world = await createAuthWorld();
});
afterEach(async () => {
  for (const cache of caches) await cache[Symbol.asyncDispose]();
  caches = [];
  await world[Symbol.asyncDispose]();
});

const invalid = { reason: ErrorReason.INVALID_API_KEY };
const away = { reason: ErrorReason.SERVICE_UNAVAILABLE };
const lookUps = () => world.wire.calls("LookUpKey");

/** A cache whose watch has begun. */
async function newCache(limits: Partial<AdmissionLimits> = {}, clock = world.clock) {
  const cache = createKeyCache({
    auth: world.mesh,
    clock,
    limits: { ...admissionLimits, ...limits },
    events: createAdmissionEvents({ log: world.log, metrics: createMetrics() }),
  });
  caches.push(cache);
  await cache.ready;
  return cache;
}

async function newKey(apiKey = "") {
  const made = await world.admin.createAccount({ name: "n", apiKey });
  return { secret: made.secret, keyId: made.key?.keyId ?? "", account: made.account };
}

/** Admits like a request does, whether the answer is cached or not. */
async function ask(cache: KeyCache, secret: string): Promise<AdmittedKey> {
  return cache.admit(secret);
}

describe("a known key", () => {
  test("costs one call, then none, and carries what auth knows of it", async () => {
    const cache = await newCache();
    const { secret, keyId, account } = await newKey();
    const key = await ask(cache, secret);
    expect(key).toMatchObject({
      keyId,
      accountId: account?.accountId,
      allowedModels: [],
      requestsPerMinute: 3_000,
      accountRequestsPerMinute: 6_000,
    });
    expect(key.scopes.size).toBe(8);
    // Cached: no promise.
    expect(cache.admit(secret)).toBe(key);
    expect(lookUps()).toBe(1);
  });

  test("many who ask for it at once share one call", async () => {
    const cache = await newCache();
    const { secret, keyId } = await newKey();
    const keys = await Promise.all(Array.from({ length: 50 }, () => ask(cache, secret)));
    expect(new Set(keys.map((key) => key.keyId))).toEqual(new Set([keyId]));
    expect(lookUps()).toBe(1);
  });

  test("a revocation counts within a second", async () => {
    const cache = await newCache();
    const { secret, keyId } = await newKey();
    await ask(cache, secret);
    await world.clock.advance(600);
    await ask(cache, secret);
    await world.admin.revokeKey({ keyId });
    await world.clock.advance(1_000);
    await expect(ask(cache, secret)).rejects.toMatchObject(invalid);
  });

  test("a change of one key leaves the others cached", async () => {
    const cache = await newCache();
    const [one, other] = [await newKey(), await newKey()];
    await Promise.all([ask(cache, one.secret), ask(cache, other.secret)]);
    await world.clock.advance(1_000);
    await Promise.all([ask(cache, one.secret), ask(cache, other.secret)]);
    const before = lookUps();
    await world.admin.rotateKey({ keyId: one.keyId });
    await world.clock.advance(1_000);
    await ask(cache, other.secret);
    expect(lookUps()).toBe(before);
    await ask(cache, one.secret);
    expect(lookUps()).toBe(before + 1);
  });

  test("its expiry and the end of a grace are checked at use, without a call", async () => {
    const cache = await newCache();
    const { secret, keyId } = await newKey();
    const { secret: next } = await world.admin.rotateKey({ keyId, graceSeconds: 10 });
    await world.clock.advance(1_000);
    await Promise.all([ask(cache, secret), ask(cache, next)]);
    await world.clock.advance(8_999);
    await ask(cache, secret);
    const before = lookUps();
    await world.clock.advance(1);
    await expect(ask(cache, secret)).rejects.toMatchObject(invalid);
    expect((await ask(cache, next)).keyId).toBe(keyId);
    expect(lookUps()).toBe(before);
  });

  test("the number of cached keys is bounded", async () => {
    const cache = await newCache({ maxCachedKeys: 2 });
    const keys = [await newKey(), await newKey(), await newKey()];
    await world.clock.advance(1_000);
    for (const { secret } of keys) await ask(cache, secret);
    for (const { secret } of keys.slice(1)) await ask(cache, secret);
    expect(lookUps()).toBe(3);
    await ask(cache, keys[0]?.secret ?? "");
    expect(lookUps()).toBe(4);
    // A key that left the cache and came back is still removed when it changes.
    await world.admin.revokeKey({ keyId: keys[0]?.keyId ?? "" });
    await world.clock.advance(1_000);
    await expect(ask(cache, keys[0]?.secret ?? "")).rejects.toMatchObject(invalid);
  });
});

describe("an unknown secret", () => {
  const secret = "nobody-has-this-secret";

  test("is remembered for a second, and no longer", async () => {
    const cache = await newCache();
    for (let i = 0; i < 5; i += 1) {
      await expect(ask(cache, secret)).rejects.toMatchObject(invalid);
    }
    expect(lookUps()).toBe(1);
    await world.clock.advance(999);
    await expect(ask(cache, secret)).rejects.toMatchObject(invalid);
    expect(lookUps()).toBe(1);
    const { keyId } = await newKey(secret);
    await world.clock.advance(1);
    expect((await ask(cache, secret)).keyId).toBe(keyId);
  });

  test("the number of those that are remembered is bounded", async () => {
    const cache = await newCache({ maxInvalidSecrets: 3 });
    const secrets = Array.from({ length: 4 }, (_, i) => `${secret}-${i}`);
    for (const one of secrets) await ask(cache, one).catch(() => {});
    expect(lookUps()).toBe(4);
    await ask(cache, secrets[3] ?? "").catch(() => {});
    expect(lookUps()).toBe(4);
    await ask(cache, secrets[0] ?? "").catch(() => {});
    expect(lookUps()).toBe(5);
  });

  test("the number of look-ups under way is bounded", async () => {
    const cache = await newCache({ maxLookUps: 2 });
    const asked = await Promise.allSettled(
      Array.from({ length: 5 }, (_, i) => ask(cache, `${secret}-${i}`)),
    );
    const reasons = asked.map((one) => one.status === "rejected" && one.reason.reason);
    expect(reasons.filter((one) => one === ErrorReason.INVALID_API_KEY)).toHaveLength(2);
    expect(reasons.filter((one) => one === ErrorReason.SERVICE_UNAVAILABLE)).toHaveLength(3);
    expect(lookUps()).toBe(2);
    // They end, so there is room again.
    await expect(ask(cache, `${secret}-9`)).rejects.toMatchObject(invalid);
  });

  test("costs no answer of the cached: a failed call is not remembered", async () => {
    const cache = await newCache();
    const { secret: good, keyId } = await newKey();
    world.wire.cut();
    await expect(ask(cache, good)).rejects.toMatchObject(away);
    world.wire.mend();
    expect((await ask(cache, good)).keyId).toBe(keyId);
  });
});

describe("auth away", () => {
  test("cached keys count for 5 s of silence, then not until auth is heard again", async () => {
    const edge = manualClock(world.clock.now());
    const { secret, keyId } = await newKey();
    const cache = await newCache({}, edge);
    await ask(cache, secret);
    world.wire.cut();
    await edge.advance(5_000);
    expect((await ask(cache, secret)).keyId).toBe(keyId);
    expect(cache.notReady()).toBeUndefined();
    await edge.advance(1);
    await expect(ask(cache, secret)).rejects.toMatchObject(away);
    await expect(ask(cache, secret)).rejects.toMatchObject({
      metadata: { retry_after_ms: "1000" },
    });
    expect(cache.notReady()).toBe("auth was not heard of for 5 s");
    world.wire.mend();
    await edge.advance(1_000);
    await until(() => cache.notReady() === undefined);
    const before = lookUps();
    expect((await ask(cache, secret)).keyId).toBe(keyId);
    // The watch went on from its revision. Cached keys may be used again, without a call.
    expect(lookUps()).toBe(before);
  });

  test("while only the watch is silent, auth is asked for each request, and its answer counts", async () => {
    const edge = manualClock(world.clock.now());
    const { secret, keyId } = await newKey();
    const cache = await newCache({}, edge);
    await ask(cache, secret);
    // The new watches that follow a silent one get no message either.
    world.wire.hold("WatchKeys");
    await edge.advance(5_001);
    expect(cache.notReady()).toBe("auth was not heard of for 5 s");
    const before = lookUps();
    expect((await ask(cache, secret)).keyId).toBe(keyId);
    expect((await ask(cache, secret)).keyId).toBe(keyId);
    expect(lookUps()).toBe(before + 2);
    await world.admin.revokeKey({ keyId });
    await expect(ask(cache, secret)).rejects.toMatchObject(invalid);
    world.wire.release();
  });

  test("a request after a revocation shares no look-up that began before it", async () => {
    const edge = manualClock(world.clock.now());
    const { secret, keyId } = await newKey();
    const cache = await newCache({}, edge);
    world.wire.hold("WatchKeys");
    await edge.advance(5_001);
    await until(() => world.wire.held() === 1);
    world.wire.hold("LookUpKey");
    const before = ask(cache, secret);
    await until(() => world.wire.held() === 2);
    await world.admin.revokeKey({ keyId });
    const after = Array.from({ length: 5 }, () => ask(cache, secret));
    const outcomes = Promise.allSettled(after);
    const calls = lookUps();
    world.wire.release();
    expect((await before).keyId).toBe(keyId);
    for (const one of await outcomes) expect(one).toMatchObject({ reason: invalid });
    expect(lookUps()).toBe(calls + 1);
  });

  test("a key revoked during the silence is refused from the first word on", async () => {
    const edge = manualClock(world.clock.now());
    const { secret, keyId } = await newKey();
    const cache = await newCache({}, edge);
    await ask(cache, secret);
    world.wire.cut();
    await world.admin.revokeKey({ keyId });
    await edge.advance(6_000);
    world.wire.mend();
    await edge.advance(1_000);
    await until(() => cache.notReady() === undefined);
    await expect(ask(cache, secret)).rejects.toMatchObject(invalid);
  });

  test("a watch that cannot go on voids everything cached", async () => {
    const edge = manualClock(world.clock.now());
    const { secret } = await newKey();
    const cache = await newCache({}, edge);
    await ask(cache, secret);
    world.wire.cut();
    // A restored backup: the revision falls, and the key is not in it.
    world.sqlite.run("DELETE FROM auth_key");
    world.sqlite.run("UPDATE auth_revision SET revision = 1");
    await world.clock.advance(250);
    await edge.advance(2_600);
    world.wire.mend();
    await edge.advance(2_000);
    await until(() => cache.notReady() === undefined);
    await expect(ask(cache, secret)).rejects.toMatchObject(invalid);
  });

  test("a dead connection is left in time: no cached key is refused for it", async () => {
    const edge = manualClock(world.clock.now());
    const cache = await newCache({}, edge);
    const { secret, keyId } = await newKey();
    await ask(cache, secret);
    // Auth's clock does not move, so no heartbeat comes, but a new watch gets its answer at once.
    for (let i = 0; i < 100; i += 1) {
      await edge.advance(100);
      expect((await ask(cache, secret)).keyId).toBe(keyId);
    }
    expect(world.wire.calls("WatchKeys")).toBeGreaterThan(2);
    expect(world.wire.calls("WatchKeys")).toBeLessThan(8);
  });

  test("a watch that auth ends is taken up again", async () => {
    const cache = await newCache();
    await world.auth.drain(new AbortController().signal);
    await world.clock.advance(1_000);
    const { secret, keyId } = await newKey();
    await ask(cache, secret);
    await world.admin.revokeKey({ keyId });
    await world.clock.advance(1_000);
    await expect(ask(cache, secret)).rejects.toMatchObject(invalid);
  });

  test("before auth was heard, each request is answered by a call and nothing is kept", async () => {
    const { secret, keyId } = await newKey();
    world.wire.cut();
    const cache = createKeyCache({
      auth: world.mesh,
      clock: manualClock(world.clock.now()),
      limits: admissionLimits,
      events: createAdmissionEvents({ log: world.log, metrics: createMetrics() }),
    });
    caches.push(cache);
    await until(() => world.wire.calls("WatchKeys") === 1);
    expect(cache.notReady()).toBe("auth was not heard yet");
    world.wire.mend();
    expect((await ask(cache, secret)).keyId).toBe(keyId);
    expect((await ask(cache, secret)).keyId).toBe(keyId);
    expect(lookUps()).toBe(2);
  });
});

test("an answer that a change overtook is not kept", async () => {
  const cache = await newCache();
  const { secret, keyId } = await newKey();
  await world.clock.advance(1_000);
  // The answer waits on the wire while the key is deleted and the change arrives.
  world.wire.hold("LookUpKey");
  const asked = ask(cache, secret);
  asked.catch(() => {});
  await until(() => world.wire.held() === 1);
  await world.admin.revokeKey({ keyId });
  await world.clock.advance(1_000);
  world.wire.release();
  await expect(asked).rejects.toMatchObject(invalid);
  await expect(ask(cache, secret)).rejects.toMatchObject(invalid);
});
