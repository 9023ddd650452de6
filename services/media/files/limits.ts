import type { FairShareBounds } from "#kit/share/fair-share.ts";

const kib = 1024;
const mib = 1024 * kib;

/** Bytes of one image (the contract's). */
export const maxImageBytes = 20 * mib;
/** Pixels of one image (the contract's): what a decoder can hold in its memory. */
export const maxImagePixels = 50_000_000;
/** Bytes that an account may have in its storage (the contract's default). */
export const defaultQuotaBytes = 1024 * mib;

/** Bytes of one message of an upload (the protocol's). */
export const maxChunkBytes = 1 * mib;
/** Characters of a file's purpose (the protocol's). */
export const maxPurposeLength = 64;
/** Bytes of a name to download by, before its suffix: file systems take 255 in all, and programs add a suffix while they download. */
export const maxDownloadStemBytes = 200;

/**
 * Uploads that one process takes at once: each has up to 20 MiB on disk until it is stored, 5 GiB in all. A quarter of
 * them for one account: half-sent ones are its own to wait for. One that is not known to pay sends some at once, no more.
 */
export const uploadShare: FairShareBounds = {
  places: 256,
  each: { places: 64, waiting: 64 },
  eachUnpaid: { places: 16, waiting: 16 },
  waitMs: 10_000,
};
/** Hint of a refusal that is ours, in ms. */
export const busyRetryMs = 1_000;
/** Spooled uploads of a process that died are older than this; one upload never takes that long, in ms. */
export const staleSpoolMs = 60 * 60_000;
/** A verified image is in the blob store within this, in ms: 20 MiB at 3 Mbit/s. */
export const storeTimeoutMs = 60_000;
/** An image that is not stored after this is given up by the process that finds it, in ms: its owner has stopped by then. */
export const storeLeaseMs = 90_000;
/** How often a request that waits for another process's image looks, in ms. */
export const waitPollMs = 200;
/** How long a request waits for that, in ms: longer than a dead one's lease and the sweeper's round. */
export const waitElsewhereMs = 100_000;

/** How often due files are looked for, by index, in ms. */
export const sweepIntervalMs = 5_000;
/** Due files taken up in one round: a backlog after an outage does not hold up what runs. */
export const sweepBatch = 100;
/** Pause after a failed attempt at the same file, in ms. */
export const sweepRetryMs = 30_000;
/**
 * How often a deleted file's pins are compared with the jobs, in ms. Unpinning itself makes the file due at once: this finds
 * the pins of a process that died just after its job had ended, and costs a read for each deleted file that a job uses.
 */
export const pinCheckMs = 5 * 60_000;
/**
 * How long a deleted file keeps its place in the order, so that a listing that deletes as it goes can go on, in ms. It is in no
 * quota, so the rate of requests alone bounds how many there are: 180,000 of an account, of 0.7 KB.
 */
export const goneKeptMs = 60 * 60_000;
/** How long a released place in the quota is remembered, in ms: no delayed call is older than its file's lease. */
export const releasedKeptMs = 60 * 60_000;

/** Files of one page (the protocol's). */
export const maxPageSize = 1_000;
/** Where the caller names none (the protocol's). */
export const defaultPageSize = 100;

/** Times that a file's beginning meets something that is gone when it looks; then its caller is told to come back. */
export const maxBeginTries = 16;
/** Jobs that use one file: bounds its document to some 800 KB; the next job is told to come back. */
export const maxPinsPerFile = 10_000;
/** Hint of that refusal, in ms: jobs end within minutes. */
export const fullPinsRetryMs = 5_000;

/** Operations in one compare-and-set of an account's quota: what a lost race folds again. */
export const maxQuotaOperations = 64;
/** Charges that a quota's document carries until they are copied: with those of one transition some 15 KB. */
export const tailCopiedAt = 64;
/** Times that a transition of a quota may be overtaken before its callers are told to come back. */
export const maxConflicts = 64;
/** Pause after having been overtaken, in ms: up to this, times how often. */
export const conflictPauseMs = 2;
