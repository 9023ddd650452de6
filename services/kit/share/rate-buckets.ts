// Counts the requests of keys and accounts in one process, and decides whether the next one is within their rates.

import { createBoundedMap } from "#kit/base/bounded-map.ts";
import type { Clock } from "#kit/time/clock.ts";

/** The key and account whose requests are counted, and how many they may make a minute. */
export interface RatedKey {
  keyId: string;
  accountId: string;
  requestsPerMinute: number;
  accountRequestsPerMinute: number;
}

/** The verdict on one request, by the tighter of its two buckets (key, account). */
export interface RateVerdict {
  ok: boolean;
  /** Requests a minute. */
  limit: number;
  /** Requests that would be admitted right now. */
  remaining: number;
  /** Milliseconds until all of the limit is there again. */
  resetMs: number;
  /** Milliseconds until a request would be admitted. 0 where `ok`, at least 1 otherwise. */
  retryAfterMs: number;
}

/** Token buckets of keys and accounts, in this process. */
export interface RateBuckets {
  /** Counts a request where both buckets have room. A refused one counts in neither. */
  take(key: RatedKey): RateVerdict;
  /** Counts as many requests as both buckets have room for, up to `wanted` (1 or more). `ok` where that is at least one. */
  takeSome(key: RatedKey, wanted: number): RateVerdict & { granted: number };
  /** Takes back a request that was counted but not made. */
  giveBack(key: RatedKey): void;
  /** Buckets that are kept. */
  readonly size: number;
}

/** Milliseconds. A bucket holds a minute: a full one admits a whole minute's requests at once, and refills evenly over a minute. */
export const bucketMs = 60_000;
/** Tolerance for sums of fractions of milliseconds, far below the share of one request at the highest rate (0.06 ms). */
const epsilonMs = 1e-6;
/** Idle buckets that are removed for each one taken. That is more than can be added, so they never pile up. */
const sweepsPerTake = 2;

/** How much of a bucket's minute is used, and at which moment. A bucket that was idle for a minute counts as empty. */
interface Bucket {
  usedMs: number;
  atMs: number;
}

interface LimitedBucket {
  bucket: Bucket;
  /** Requests a minute. */
  limit: number;
}

/**
 * Makes buckets that all have room. At most `maxBuckets` are kept of keys, and as many of accounts. A request uses 1/limit of a minute,
 * and a minute drains in a minute. That is the token bucket, counted in time, so that keys of different rates can share an account's
 * bucket. The burst is a whole minute's requests, so `limit` and `remaining` mean what clients expect. The first `limit` requests are
 * admitted at any pace, and no minute ever sees more than twice the limit.
 */
export function createRateBuckets(deps: { clock: Clock; maxBuckets: number }): RateBuckets {
  const { clock, maxBuckets } = deps;
  const keys = createBoundedMap<Bucket>(maxBuckets);
  const accounts = createBoundedMap<Bucket>(maxBuckets);
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
    bucket.usedMs = Math.max(0, bucket.usedMs - (nowMs - bucket.atMs));
    bucket.atMs = nowMs;
    return bucket;
  };
  const bothOf = (key: RatedKey) => {
    const nowMs = clock.steady();
    // A key whose rate is above its account's default was meant to have it.
    const accountLimit = Math.max(key.accountRequestsPerMinute, key.requestsPerMinute);
    return [
      { bucket: bucketOf(keys, key.keyId, nowMs), limit: key.requestsPerMinute },
      { bucket: bucketOf(accounts, key.accountId, nowMs), limit: accountLimit },
    ] as const;
  };
  const takeSome: RateBuckets["takeSome"] = (key, wanted) => {
    const both = bothOf(key);
    const [own, shared] = both;
    const granted = Math.min(wanted, roomIn(own), roomIn(shared));
    for (const { bucket, limit } of both) bucket.usedMs += (granted * bucketMs) / limit;
    return { ...tighter(verdict(granted > 0, own), verdict(granted > 0, shared)), granted };
  };
  return {
    get size() {
      return keys.size + accounts.size;
    },
    take(key) {
      const { granted: _, ...told } = takeSome(key, 1);
      return told;
    },
    takeSome,
    giveBack(key) {
      for (const { bucket, limit } of bothOf(key)) {
        bucket.usedMs = Math.max(0, bucket.usedMs - bucketMs / limit);
      }
    },
  };
}

/** The tighter of two verdicts: the one whose refused caller waits longer, or whose admitted caller has fewer requests left. */
export function tighter(one: RateVerdict, other: RateVerdict): RateVerdict {
  if (one.retryAfterMs !== other.retryAfterMs) {
    return one.retryAfterMs > other.retryAfterMs ? one : other;
  }
  return other.remaining < one.remaining ? other : one;
}

/** Requests that would be admitted now. */
function roomIn({ bucket, limit }: LimitedBucket): number {
  return Math.max(0, Math.floor(((bucketMs - bucket.usedMs + epsilonMs) * limit) / bucketMs));
}

function verdict(ok: boolean, limited: LimitedBucket): RateVerdict {
  const { bucket, limit } = limited;
  const waitMs = bucket.usedMs + bucketMs / limit - bucketMs;
  return {
    ok,
    limit,
    remaining: roomIn(limited),
    resetMs: bucket.usedMs,
    retryAfterMs: ok || waitMs <= epsilonMs ? 0 : Math.max(1, Math.ceil(waitMs - epsilonMs)),
  };
}
