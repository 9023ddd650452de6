import type { Clock } from "#kit/clock.ts";
import { createBoundedMap } from "./bounded-map.ts";
import type { AdmissionLimits } from "./limits.ts";

/** Whose requests are counted, and how many a minute they may be. */
export interface RatedKey {
  keyId: string;
  accountId: string;
  requestsPerMinute: number;
  accountRequestsPerMinute: number;
}

/** What became of one request, told of the tighter of its two buckets (key, account). */
export interface RateVerdict {
  ok: boolean;
  /** Requests a minute. */
  limit: number;
  /** Requests that would be admitted right now. */
  remaining: number;
  /** Until all of the limit is there again. */
  resetMs: number;
  /** Until a request would be admitted; 0 where `ok`. At least 1 otherwise. */
  retryAfterMs: number;
}

/** Token buckets a key and an account, in this process: n gateways admit up to n times as much. */
export interface RateLimiter {
  /** Counts a request where both buckets have room; a refused one counts in neither. */
  take(key: RatedKey): RateVerdict;
  /** Buckets that are kept. */
  readonly size: number;
}

/** A bucket holds a minute: full, it admits a whole minute's requests at once, and refills evenly over a minute. */
const bucketMs = 60_000;
/** Tolerance for sums of fractions of milliseconds, far below the share of one request at the highest rate (0.06 ms). */
const epsilonMs = 1e-6;
/** Idle buckets dropped for each one taken: more than can be added, so that they never pile up. */
const sweepsPerTake = 2;

/** How much of its minute is used, as of a moment. A bucket that was idle for a minute is as good as none. */
interface Bucket {
  usedMs: number;
  atMs: number;
}

/**
 * Makes a limiter with no one in it. A request uses 1/limit of a minute, and a minute drains in a minute: the token
 * bucket, counted in time, so that keys of different rates can share an account's bucket. The burst is a whole minute's
 * requests: `limit` and `remaining` then mean what clients take them for, the first `limit` requests are admitted at
 * any pace, and no minute ever sees more than twice the limit.
 */
export function createRateLimiter(deps: {
  clock: Clock;
  limits: Pick<AdmissionLimits, "maxBuckets">;
}): RateLimiter {
  const { clock, limits } = deps;
  const keys = createBoundedMap<Bucket>(limits.maxBuckets);
  const accounts = createBoundedMap<Bucket>(limits.maxBuckets);
  const bucketOf = (buckets: typeof keys, name: string, nowMs: number): Bucket => {
    for (let i = 0; i < sweepsPerTake; i += 1) {
      const oldest = buckets.oldest();
      if (!oldest || nowMs - oldest[1].atMs < bucketMs) break;
      buckets.delete(oldest[0]);
    }
    let bucket = buckets.get(name);
    if (!bucket) {
      bucket = { usedMs: 0, atMs: nowMs };
      buckets.set(name, bucket);
    }
    // A clock that was set back drains nothing.
    bucket.usedMs = Math.max(0, bucket.usedMs - Math.max(0, nowMs - bucket.atMs));
    bucket.atMs = nowMs;
    return bucket;
  };
  return {
    get size() {
      return keys.size + accounts.size;
    },
    take(key) {
      const nowMs = clock.now();
      const ofKey = bucketOf(keys, key.keyId, nowMs);
      const ofAccount = bucketOf(accounts, key.accountId, nowMs);
      // A key that was given more than its account's default was meant to have it.
      const accountLimit = Math.max(key.accountRequestsPerMinute, key.requestsPerMinute);
      const keyShareMs = bucketMs / key.requestsPerMinute;
      const accountShareMs = bucketMs / accountLimit;
      const ok = hasRoom(ofKey, keyShareMs) && hasRoom(ofAccount, accountShareMs);
      if (ok) {
        ofKey.usedMs += keyShareMs;
        ofAccount.usedMs += accountShareMs;
      }
      const byKey = verdict(ok, ofKey, key.requestsPerMinute);
      const byAccount = verdict(ok, ofAccount, accountLimit);
      return isTighter(byAccount, byKey) ? byAccount : byKey;
    },
  };
}

/**
 * OpenAI's headers: the limit a minute, what is left of it, and the time until all of it is there again ("12ms", "6.5s",
 * "1m0s"; rounded up to the millisecond).
 */
export function rateHeaders(verdict: RateVerdict): Record<string, string> {
  return {
    "x-ratelimit-limit-requests": String(verdict.limit),
    "x-ratelimit-remaining-requests": String(verdict.remaining),
    "x-ratelimit-reset-requests": formatDuration(verdict.resetMs),
  };
}

function hasRoom(bucket: Bucket, shareMs: number): boolean {
  return bucket.usedMs + shareMs <= bucketMs + epsilonMs;
}

function verdict(ok: boolean, bucket: Bucket, limit: number): RateVerdict {
  const shareMs = bucketMs / limit;
  const waitMs = bucket.usedMs + shareMs - bucketMs;
  return {
    ok,
    limit,
    remaining: Math.max(0, Math.floor((bucketMs - bucket.usedMs + epsilonMs) / shareMs)),
    resetMs: bucket.usedMs,
    retryAfterMs: ok || waitMs <= epsilonMs ? 0 : Math.max(1, Math.ceil(waitMs - epsilonMs)),
  };
}

/** The bucket that a refused caller waits for longer, or an admitted one exhausts sooner. */
function isTighter(a: RateVerdict, b: RateVerdict): boolean {
  if (a.retryAfterMs !== b.retryAfterMs) return a.retryAfterMs > b.retryAfterMs;
  return a.remaining < b.remaining;
}

function formatDuration(durationMs: number): string {
  const ms = Math.ceil(durationMs - epsilonMs);
  if (ms < 1_000) return `${Math.max(0, ms)}ms`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = `${(ms % 60_000) / 1_000}s`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}
