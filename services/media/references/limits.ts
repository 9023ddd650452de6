import type { FairShareBounds } from "#kit/fair-share.ts";

/** References fetched, decoded and stored at once in one process: each has up to 20 MiB in memory. */
export const importShare: FairShareBounds = {
  places: 32,
  // Slow hosts that an account names hold up its own jobs alone; seven references a job.
  each: { places: 7, waiting: 1_024 },
  eachUnpaid: { places: 7, waiting: 28 },
  // Below the edge's deadline of a submission.
  waitMs: 60_000,
};
/** Attempts at one reference whose file is deleted, or given up, while the job takes hold of it. */
export const maxTurns = 5;
/** Purpose under which imports are listed. */
export const importPurpose = "reference";
