// The bounds and times of uploads, imports and quotas, each with its unit and reason.

import type { FairShareBounds } from "#kit/share/fair-share.ts";

const kib = 1024;
const mib = 1024 * kib;

/** Bytes of one image, by the API's contract. */
export const maxImageBytes = 20 * mib;
/** Pixels of one image, by the API's contract. A decoder can hold them in its memory. */
export const maxImagePixels = 50_000_000;
/** Bytes that an account may have in its storage: the default of the API's contract. */
export const defaultQuotaBytes = 1024 * mib;

/** Bytes of one message of an upload, by the protocol. */
export const maxChunkBytes = 1 * mib;
/** Characters of a file's purpose, by the protocol. */
export const maxPurposeLength = 64;
/** Bytes of a name for a download, before its suffix. File systems take 255 in all, and programs add a suffix while they download. */
export const maxDownloadStemBytes = 200;

/**
 * Uploads that one process takes at once. Each has up to 20 MiB on disk until it is stored, 5 GiB in all. One account has at most a
 * quarter of them, so that its half-sent uploads block only itself. An account that is not known to pay may send only some at once.
 */
export const uploadShare: FairShareBounds = {
  places: 256,
  each: { places: 64, waiting: 64 },
  eachUnpaid: { places: 16, waiting: 16 },
  waitMs: 10_000,
};
/** Hint for when to try again in a refusal of this service, in ms. */
export const busyRetryMs = 1_000;
/** Spooled uploads of a process that died are older than this, in ms. One upload never takes that long. */
export const staleSpoolMs = 60 * 60_000;
/** Milliseconds in which a verified image must be in the blob store: 20 MiB at 3 Mbit/s. */
export const storeTimeoutMs = 60_000;
/** An image that is not stored after this is given up by the process that finds it, in ms. Its owner has stopped by then. */
export const storeLeaseMs = 90_000;
/** Milliseconds between two looks of a request that waits for another process's image. */
export const waitPollMs = 200;
/** How long a request waits for that, in ms. It is longer than the lease of a dead process and the sweeper's round. */
export const waitElsewhereMs = 100_000;

/** Time between two searches for due files, by index, in ms. */
export const sweepIntervalMs = 5_000;
/** Due files that are taken up in one round. A backlog after an outage does not delay running work. */
export const sweepBatch = 100;
/** Pause after a failed attempt at the same file, in ms. */
export const sweepRetryMs = 30_000;
/**
 * Time between two comparisons of a deleted file's pins with the jobs, in ms. Unpinning itself makes the file due at once. This finds
 * the pins of a process that died just after its job had ended. It costs a read for each deleted file that a job uses.
 */
export const pinCheckMs = 5 * 60_000;
/**
 * How long a deleted file keeps its place in the order, in ms. So a listing that deletes meanwhile can go on. The file counts in no
 * quota, so only the rate of requests bounds their number. That is 180,000 of an account, of 0.7 KB.
 */
export const goneKeptMs = 60 * 60_000;
/** How long a released place in the quota is remembered, in ms. No delayed call is older than its file's lease. */
export const releasedKeptMs = 60 * 60_000;

/** Files of one page, by the protocol. */
export const maxPageSize = 1_000;
/** Files of a page where the caller names no number, by the protocol. */
export const defaultPageSize = 100;

/** How often a new file may conflict with a file that is gone when it is read. Then its caller is asked to try again. */
export const maxBeginTries = 16;
/** Jobs that use one file. This bounds its document to some 800 KB. The caller of a further job is asked to try again. */
export const maxPinsPerFile = 10_000;
/** Hint for when to try again in that refusal, in ms. Jobs end within minutes. */
export const fullPinsRetryMs = 5_000;

/** Operations in one compare-and-set of an account's quota. All of them are folded again after a lost race. */
export const maxQuotaOperations = 64;
/** Charges that a quota's document carries until they are copied. With those of one transition they have some 15 KB. */
export const tailCopiedAt = 64;
/** How often a transition of a quota may lose to others before its callers are asked to try again. */
export const maxConflicts = 64;
/** Longest pause after losing to another one, in ms. It is multiplied by the number of losses. */
export const conflictPauseMs = 2;
