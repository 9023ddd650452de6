// The bounds and times of speech, each with its unit and reason.

import type { FairShareBounds } from "#kit/share/fair-share.ts";

/**
 * Requests of one process at once. Each has a connection to an upstream, and its speech takes room of {@link soundsInMemory}. One
 * account has half of them, so that its requests leave room to the others. An account that is not known to pay has an eighth.
 */
export const speechShare: FairShareBounds = {
  places: 128,
  each: { places: 64, waiting: 64 },
  eachUnpaid: { places: 16, waiting: 16 },
  waitMs: 10_000,
};
/**
 * Callers that hear one speech while it is spoken, the one that began it included. A slow one keeps some 300 KB in buffers. With the
 * places of {@link speechShare} an account has as many as the edge lets it have files open. Later ones wait for the stored speech.
 */
export const maxListeners = 4;
/** Ms after which a caller refused by genmesh itself may try again. */
export const busyRetryMs = 1_000;

/** Ms for a speech, even if an upstream's own time-out is longer. It is below the edge's deadline of 15 minutes. */
export const speakTimeoutMs = 14 * 60_000;
const mib = 1024 * 1024;

/**
 * Bytes of speeches in memory, from before their upstream is asked until they are stored. Storing takes a minute on a full disk. The
 * bytes are room for some thirty of the longest English MP3s, or four of the largest speeches that are taken. Each is there twice for
 * a moment, when its pieces are joined.
 *
 * An account has half, as of the requests. An account that is not known to pay has room for one of the largest, and no speech takes
 * more. A caller waits for that room as long as an upstream usually takes to answer. It pays nothing if it finds none.
 */
export const soundsInMemory: FairShareBounds = {
  places: 256 * mib,
  each: { places: 128 * mib, waiting: 64 },
  eachUnpaid: { places: 64 * mib, waiting: 16 },
  waitMs: 30_000,
};
/** A speech larger than its estimate takes this many bytes of room at once. A look at the share for each piece would cost more. */
export const soundStepBytes = mib;
/**
 * Ms within which a finished speech is in the blob store, including the wait for room on disk. Its caller waits too, and the edge's
 * deadline is near.
 */
export const storeTimeoutMs = 60_000;

/** Ms between two looks of a duplicate whether another process has finished. */
export const waitPollMs = 200;
