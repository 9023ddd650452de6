import { clockSlackMs } from "#kit/time/lease-time.ts";

/** A request that was not sent upstream within this, counted from the first look for its money, is never sent (docs/money.md), in ms. */
export const dispatchWithinMs = 5_000;
/**
 * When billing asks about a hold that is still open, counted from its opening (docs/money.md): its lease, and as much again
 * for what the clocks of machines differ, in ms.
 */
export const holdCheckMs = 60_000;
/** How long billing is told to keep the hold of a request that runs, in ms. */
export const keepHoldMs = 60_000;

/** Time between two beats of a running request (docs/money.md), in ms. */
export const beatMs = 2_000;
/** Without a beat for this long a request's process counts as dead (docs/money.md), in ms. */
export const leaseMs = 30_000;
/** A process that could not beat gives a request up this long before others may take it over, in ms. */
export const leaseMarginMs = 5_000;

/** What the draw may add to an answer before it goes out on its row instead (docs/money.md), in ms. */
export const drawBudgetMs = 500;
/** When a request whose charge is decided but not drawn is taken up by any replica, in ms. */
export const settleRetryMs = 5_000;

/** Pause after a failed attempt of the sweeper at the same request, in ms. */
export const sweepRetryMs = 10_000;
/** How often due requests are looked for, by index, in ms. */
export const sweepIntervalMs = 1_000;
/** Due requests taken up in one round: a backlog after an outage does not hold up what runs. */
export const sweepBatch = 100;
/** No request is leased, or put off while it is settled, for longer by a right clock, in ms. */
export const longestDueMs = Math.max(leaseMs, settleRetryMs, sweepRetryMs) + clockSlackMs;
