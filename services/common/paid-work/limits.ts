// The times by which a paid request is sent, kept alive, charged, and taken up by another process after a crash. Text and speech
// share them.

import { clockSlackMs } from "#kit/time/lease-time.ts";

/**
 * A request must be sent to its upstream within this many ms, counted from the first check of its money. Otherwise it is never sent
 * (docs/money.md).
 */
export const dispatchWithinMs = 5_000;
/**
 * When billing asks about a hold that is still open, in ms after its opening (docs/money.md). It is the lease, and as much again for
 * differences between the clocks of machines.
 */
export const holdCheckMs = 60_000;
/** How long billing is asked to keep the hold of a request that runs, in ms. */
export const keepHoldMs = 60_000;

/** Time between two beats of a running request (docs/money.md), in ms. */
export const beatMs = 2_000;
/** Without a beat for this many ms a request's process counts as dead (docs/money.md). */
export const leaseMs = 30_000;
/** A process that could not beat gives a request up this many ms before others may take it over. */
export const leaseMarginMs = 5_000;

/** The most that the charge may delay an answer, in ms. After that the answer goes out on its row instead (docs/money.md). */
export const drawBudgetMs = 500;
/** A request whose charge is decided but not made is taken up by any replica after this many ms. */
export const settleRetryMs = 5_000;

/** Pause after a failed attempt of the sweep at the same request, in ms. */
export const sweepRetryMs = 10_000;
/** Time between two searches for due requests, by index, in ms. */
export const sweepIntervalMs = 1_000;
/** Due requests that are taken up in one round. A backlog after an outage does not delay running requests. */
export const sweepBatch = 100;
/** By a right clock, no request is leased, or put off while it is settled, for longer than this many ms. */
export const longestDueMs = Math.max(leaseMs, settleRetryMs, sweepRetryMs) + clockSlackMs;
