import type { FairShareBounds } from "#kit/fair-share.ts";
import { clockSlackMs } from "#kit/lease-time.ts";

/** Code points of the input (the contract's). */
export const maxInputLength = 4_096;
/** Pace (the contract's). */
export const speedBounds = { min: 0.25, max: 4 } as const;
/** Characters of a model id: above it no catalog has one, and a refusal does not echo it. */
export const maxModelIdLength = 200;

/**
 * Requests that one process has under way: an MP3 of 4,096 characters has up to 5 MB. Half of them for one account, so that
 * what one sends at once leaves room to the others; an eighth for one that is not known to pay.
 */
export const speechShare: FairShareBounds = {
  places: 128,
  each: { places: 64, waiting: 64 },
  eachUnpaid: { places: 16, waiting: 16 },
  waitMs: 10_000,
};
/** Hint of a refusal that is ours, in ms. */
export const busyRetryMs = 1_000;

/** An intent that was not confirmed within this is never dispatched, in ms (docs/money.md). */
export const confirmWithinMs = 5_000;
/** When billing asks about a hold that is still open, counted from its opening, in ms (docs/money.md). */
export const holdCheckMs = 60_000;
/** How long billing is told to keep the hold of a request that runs, in ms. */
export const keepHoldMs = 60_000;
/** Time between two beats of a running request, in ms (docs/money.md). */
export const beatMs = 2_000;
/** Without a beat for this long a request's process counts as dead, in ms (docs/money.md). */
export const leaseMs = 30_000;
/** No request is leased, or put off while it is settled, for longer by a right clock, in ms. */
export const longestDueMs = leaseMs + clockSlackMs;
/** A process that could not beat gives a request up this long before others may take it over, in ms. */
export const leaseMarginMs = 5_000;
/** A speech takes no longer, whatever the upstreams' own time-outs, in ms: below the edge's deadline of 15 minutes. */
export const speakTimeoutMs = 14 * 60_000;
/** A finished MP3 is in the blob store within this, in ms. */
export const storeTimeoutMs = 60_000;

/** What settling may add to an answer before it goes out, in ms (docs/money.md). */
export const settleBudgetMs = 500;
/** When a request that was closed but not settled is taken up by any process, in ms. */
export const settleRetryMs = 5_000;
/** Pause after a failed attempt of the sweeper at the same request, in ms. */
export const sweepRetryMs = 10_000;
/** How often due requests are looked for, by index, in ms. */
export const sweepIntervalMs = 1_000;
/** Due requests taken up in one round: a backlog after an outage does not hold up what runs. */
export const sweepBatch = 100;
/** How often a duplicate looks whether another process has finished, in ms. */
export const waitPollMs = 200;
