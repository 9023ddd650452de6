// Counts the requests of keys and accounts, in this gateway alone or shared with others by auth, and words the rate for the
// answer's headers.

import type { Client } from "@connectrpc/connect";
import { createBoundedMap } from "#kit/base/bounded-map.ts";
import { affinityHeader } from "#kit/rpc/affinity.ts";
import {
  bucketMs,
  createRateBuckets,
  type RateBuckets,
  type RatedKey,
  type RateVerdict,
  tighter,
} from "#kit/share/rate-buckets.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { AuthService } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import type { AdmissionEvents } from "./events.ts";
import type { AdmissionLimits } from "./limits.ts";

/** Counts requests, and decides which are too many. */
export interface RateLimiter {
  /** Counts a request where its key and account have room. At once, unless another process must be asked first. */
  take(key: RatedKey): RateVerdict | Promise<RateVerdict>;
}

/** The parts that a limiter needs. */
interface RateLimiterDeps {
  auth: Client<typeof AuthService>;
  clock: Clock;
  limits: AdmissionLimits;
  events: Pick<AdmissionEvents, "rateUnshared">;
}

/** The rates of the only gateway of a deployment. It counts them itself, without a call. */
export function createOwnRates({ clock, limits }: RateLimiterDeps): RateLimiter {
  return createRateBuckets({ clock, maxBuckets: limits.maxBuckets });
}

/** Requests of a key that auth has counted already. */
interface Lease {
  left: number;
  /** Auth's last answer, and its time. */
  told: RateVerdict;
  toldAtMs: number;
  /** The number of requests in the last question. */
  asked: number;
  /** Callers that wait for an answer. */
  waiting: number;
  asking: Promise<"told" | "away"> | undefined;
}

/**
 * Rates that several gateways share. Auth counts. A gateway leases several requests of a key at once: first one, then as many as it
 * used in the last second. It asks for at most twice as many as before, and at most the key's rate of a second. So the number that all
 * gateways admit differs from the limit by at most a second's worth for each of them. A busy key costs about a call a second. Each
 * gateway also counts alone, and uses only that count where auth is away.
 */
export function createSharedRates(deps: RateLimiterDeps): RateLimiter {
  const { clock, limits } = deps;
  const own = createRateBuckets({ clock, maxBuckets: limits.maxBuckets });
  const leases = createBoundedMap<Lease>(limits.maxBuckets);
  let awayUntilMs = 0;

  async function lease(key: RatedKey, held: Lease): Promise<"told" | "away"> {
    try {
      await renew(deps, key, held);
      return "told";
    } catch (error) {
      awayUntilMs = clock.steady() + limits.unsharedForMs;
      deps.events.rateUnshared(error);
      return "away";
    } finally {
      held.asking = undefined;
    }
  }
  /** Several waiting requests share a call. Each answer serves some of them, or refuses the others. */
  async function ask(key: RatedKey, held: Lease, ofOwn: RateVerdict): Promise<RateVerdict> {
    held.waiting += 1;
    try {
      for (;;) {
        held.asking ??= lease(key, held);
        if ((await held.asking) === "away") return ofOwn;
        if (held.left > 0) return spend(held, ofOwn, clock.steady());
        if (!held.told.ok) return refused(held, own, key, clock.steady());
      }
    } finally {
      held.waiting -= 1;
    }
  }
  return {
    take(key) {
      const ofOwn = own.take(key);
      // A request that is too much for one gateway is too much for all.
      if (!ofOwn.ok) return ofOwn;
      const nowMs = clock.steady();
      const held = leases.get(key.keyId) ?? newLease();
      leases.set(key.keyId, held);
      // Requests that were counted a minute ago have drained since.
      if (nowMs - held.toldAtMs >= bucketMs) held.left = 0;
      if (held.left > 0) return spend(held, ofOwn, nowMs);
      if (isRefused(held, nowMs, limits)) return refused(held, own, key, nowMs);
      if (nowMs < awayUntilMs) return ofOwn;
      return ask(key, held, ofOwn);
    },
  };
}

function newLease(): Lease {
  const told = { ok: true, limit: 0, remaining: 0, resetMs: 0, retryAfterMs: 0 };
  return { left: 0, told, toldAtMs: -Infinity, asked: 0, waiting: 0, asking: undefined };
}

async function renew(
  { auth, clock, limits }: RateLimiterDeps,
  key: RatedKey,
  held: Lease,
): Promise<void> {
  const { keyId, accountId, requestsPerMinute, accountRequestsPerMinute } = key;
  const most = Math.max(1, Math.floor((requestsPerMinute * limits.leaseMs) / bucketMs));
  // At the pace of the last ones, these last for the time of a lease.
  const atPace = Math.ceil((held.asked * limits.leaseMs) / (clock.steady() - held.toldAtMs));
  // Waiting callers use theirs at once.
  held.asked = Math.max(held.waiting, Math.min(most, 2 * held.asked, atPace));
  const answer = await auth.leaseRequests(
    { keyId, accountId, requestsPerMinute, accountRequestsPerMinute, wanted: held.asked },
    { headers: { [affinityHeader]: accountId }, timeoutMs: limits.leaseTimeoutMs },
  );
  const { granted, limit, remaining, resetMs, retryAfterMs } = answer;
  held.left = granted;
  held.told = { ok: granted > 0, limit, remaining, resetMs, retryAfterMs };
  held.toldAtMs = clock.steady();
}

/** Uses one of the requests that auth has counted. */
function spend(held: Lease, ofOwn: RateVerdict, nowMs: number): RateVerdict {
  held.left -= 1;
  const { told, toldAtMs, left } = held;
  const resetMs = Math.max(0, told.resetMs - (nowMs - toldAtMs));
  return tighter({ ...told, remaining: told.remaining + left, resetMs }, ofOwn);
}

/** Was it refused so recently that asking again would lead to a refusal, too? */
function isRefused({ told, toldAtMs }: Lease, nowMs: number, limits: AdmissionLimits): boolean {
  return !told.ok && nowMs - toldAtMs < Math.min(told.retryAfterMs, limits.refusedForMs);
}

function refused(held: Lease, own: RateBuckets, key: RatedKey, nowMs: number): RateVerdict {
  own.giveBack(key);
  const { told, toldAtMs } = held;
  const goneMs = nowMs - toldAtMs;
  return {
    ...told,
    resetMs: Math.max(0, told.resetMs - goneMs),
    retryAfterMs: Math.max(1, Math.ceil(told.retryAfterMs - goneMs)),
  };
}

/** Tolerance for sums of fractions of milliseconds. */
const epsilonMs = 1e-6;

/**
 * OpenAI's headers: the limit a minute, the number that is left, and the time until all of it is there again ("12ms", "6.5s", "1m0s";
 * rounded up to the millisecond).
 */
export function rateHeaders(verdict: RateVerdict): Record<string, string> {
  return {
    "x-ratelimit-limit-requests": String(verdict.limit),
    "x-ratelimit-remaining-requests": String(verdict.remaining),
    "x-ratelimit-reset-requests": formatDuration(verdict.resetMs),
  };
}

function formatDuration(durationMs: number): string {
  const ms = Math.ceil(durationMs - epsilonMs);
  if (ms < 1_000) return `${Math.max(0, ms)}ms`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = `${(ms % 60_000) / 1_000}s`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}
