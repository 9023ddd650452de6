import type { FairShareBounds } from "#kit/share/fair-share.ts";

/**
 * Requests that one process has under way: each is a connection to an upstream, and its sound takes of {@link soundsInMemory} beside.
 * Half of them for one account, so that what one sends at once leaves room to the others; an eighth for one that is not known to pay.
 */
export const speechShare: FairShareBounds = {
  places: 128,
  each: { places: 64, waiting: 64 },
  eachUnpaid: { places: 16, waiting: 16 },
  waitMs: 10_000,
};
/** Hint of a refusal that is ours, in ms. */
export const busyRetryMs = 1_000;

/** A speech takes no longer, also where an upstream's own time-out is longer, in ms: below the edge's deadline of 15 minutes. */
export const speakTimeoutMs = 14 * 60_000;
const mib = 1024 * 1024;

/**
 * Bytes of sounds in memory, from before their upstream is asked until they are stored, which on a full disk takes a minute: some thirty of the
 * longest English MP3s, four of the largest sounds that are taken. Each is there twice for a moment, when its pieces are joined. An
 * account has half, as of the requests; one that is not known to pay room for one of the largest, and no sound takes more.
 * A caller waits for that room as long as an answer of usual length takes upstream, and costs nothing if it finds none.
 */
export const soundsInMemory: FairShareBounds = {
  places: 256 * mib,
  each: { places: 128 * mib, waiting: 64 },
  eachUnpaid: { places: 64 * mib, waiting: 16 },
  waitMs: 30_000,
};
/** A sound that comes out larger than was reckoned takes so much more room at once, in bytes: a look at the share for each piece would cost more. */
export const soundStepBytes = mib;
/**
 * A finished sound is in the blob store within this, in ms, waiting for room on disk included: its caller waits too, and the
 * edge's deadline is not far.
 */
export const storeTimeoutMs = 60_000;

/** How often a duplicate looks whether another process has finished, in ms. */
export const waitPollMs = 200;
