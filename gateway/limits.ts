import { maxSettingsBytes } from "#kit/base/json.ts";
import type { FairShareBounds } from "#kit/share/fair-share.ts";

/** Bounds of the public edge, each with its reason. */

const kib = 1024;
const mib = 1024 * kib;

/** Bodies by route family (the contract's): inline images on text, references on images and videos, prompts elsewhere. */
export const bodyLimitsBytes = {
  text: 64 * mib,
  references: 32 * mib,
  other: 1 * mib,
  /** Keys and alerts. */
  settings: maxSettingsBytes,
  /** In base64, as its images go on, it is no larger than a body with references. */
  imageForm: 23 * mib,
  /** A sound of OpenAI's largest size, and the fields beside it. */
  soundForm: 25 * mib + 64 * kib,
} as const;

/** All request bodies held at once, unless settings say otherwise: eight of the largest, so that bodies alone never fill a small container. */
export const defaultMaxBytesInFlight = 512 * mib;

/**
 * How that is shared. Three eighths for one account: six inline images of the largest size; an eighth, which is one
 * body of the largest size, for one that is not known to pay. What finds no room waits, unread.
 */
export function bodyBounds(maxBytesInFlight: number): FairShareBounds {
  const eighth = Math.max(bodyLimitsBytes.text, Math.floor(maxBytesInFlight / 8));
  return {
    places: maxBytesInFlight,
    each: { places: Math.min(3 * eighth, maxBytesInFlight), waiting: 256 },
    eachUnpaid: { places: Math.min(eighth, maxBytesInFlight), waiting: 64 },
    waitMs: 10_000,
  };
}

/** A body of no more than this has room of its own: a prompt never waits behind inline images. */
export const smallBodyBytes = 64 * kib;

/** That room, beside the one of large bodies and shared as it is: an eighth of it, a thousand of the largest small bodies. */
export function smallBodyBounds(maxBytesInFlight: number): FairShareBounds {
  const { each, eachUnpaid, waitMs } = bodyBounds(maxBytesInFlight);
  const places = Math.max(smallBodyBytes, Math.floor(maxBytesInFlight / 8));
  return {
    places,
    each: { ...each, places: Math.max(smallBodyBytes, Math.floor((3 * places) / 8)) },
    eachUnpaid: {
      ...(eachUnpaid ?? each),
      places: Math.max(smallBodyBytes, Math.floor(places / 8)),
    },
    waitMs,
  };
}

/** Files on their way to callers: each keeps a file or a connection to the store open, as slowly as its caller reads. */
export const downloadShare: FairShareBounds = {
  places: 1_024,
  each: { places: 256, waiting: 256 },
  eachUnpaid: { places: 64, waiting: 64 },
  waitMs: 10_000,
};

/**
 * Bytes of repeated JSON answers on their way to callers, which cost nothing and are in memory until their callers have read them: for
 * each account four of the largest, or thousands of usual length. Others of it wait, a few at a time: each was read.
 */
export const repeatedShare: FairShareBounds = {
  places: 128 * mib,
  each: { places: 32 * mib, waiting: 4 },
  waitMs: 10_000,
};

/**
 * Lists and reports that are being read: each keeps the event loop for up to some 20 ms, and so many turns may come between two
 * of another request. An account's pages and programs ask for a few at once; what is behind those that wait is refused.
 */
export const readShare: FairShareBounds = {
  places: 8,
  each: { places: 2, waiting: 64 },
  waitMs: 10_000,
};
/** Entries that an export reads at a time: a few ms. */
export const exportPage = 100;

/** Largest image that the file storage takes; what a multipart body may hold back until its `purpose` is known. */
export const uploadBufferBytes = 20 * mib;
/** Bytes of one message of an upload (the media service's bound). */
export const uploadChunkBytes = 1 * mib;
/** Most parts and text of a multipart form: two fields are used, SDKs add a few more. */
export const multipartLimits = {
  fields: 32,
  parts: 40,
  fieldNameSize: 200,
  fieldSize: 64 * kib,
  headerPairs: 20,
} as const;

/** Request line and headers together: Node's default, written down because the contract's error answers what is above. */
export const maxHeaderBytes = 16 * kib;
/** A caller has this long to send its headers; browsers and proxies need milliseconds. */
export const headersTimeoutMs = 20_000;
/** A body that brings no byte for this long counts as stalled. */
export const bodyIdleMs = 30_000;
/** A body that is not complete after this long counts as stalled: 64 MiB at 1 Mbit/s take 9 minutes. */
export const bodyTotalMs = 10 * 60_000;
/**
 * While another account waits for room, a body must come at this pace, in bytes a ms, and gives way where it is behind it by
 * `bodyBehindMs`: 64 MiB in a minute. Without that, a few accounts could fill the room with bodies that they announce and do not send.
 */
export const bodyBytesAMs = mib / 1_000;
/** As much as a caller that sends may pause. */
export const bodyBehindMs = 1_000;
/** How often such bodies are looked for while an account waits. */
export const bodyBehindLookMs = 250;
/** Node's own bound on a request, for what the two above do not see. */
export const requestTimeoutMs = bodyTotalMs + 60_000;
/** How often stalled bodies are looked for. */
export const bodySweepMs = 1_000;
/** A caller that takes nothing of its answer for this long has left (the contract's). */
export const stalledReaderMs = 60_000;
/** How often such callers are looked for: one is noticed this much late. */
export const readerSweepMs = 2_000;
/** How often Node looks for requests that take too long. */
export const connectionsCheckMs = 5_000;
/** Idle keep-alive connections; above the 60 s after which common load balancers drop theirs. */
export const keepAliveTimeoutMs = 72_000;
/**
 * Silence on a connection after which TCP asks whether the other side is there: an answer may wait for minutes for its job, and what
 * translates addresses in between forgets a connection on which nothing goes.
 */
export const tcpProbeAfterMs = 30_000;

/**
 * Connections held at once, each some 50 KB with its buffers: half a GiB. One address has half of them, so that no single
 * machine takes them all (IPv6: one /64); a proxy that `GENMESH_TRUST_PROXY` names stands for many callers and may have all. At the
 * total, connections that have shown no valid key give way to newcomers, then those of the account that has most: idle ones, then those
 * whose bodies come behind {@link bodyBytesAMs}.
 */
export const connectionLimits = { total: 10_000, each: 5_000 } as const;

/**
 * Lines a second in the log for requests that showed no valid key: they cost their callers nothing, so the log's size
 * must not be theirs to choose. The metrics count all of them.
 */
export const anonymousLinesASecond = 20;

/** After an early refusal the rest of the body is read for this long, so that the caller sees the answer and no reset. */
export const lingerMs = 2_000;
/**
 * All such rests together are read no faster than this in each window: 64 MiB a second, some hundredths of a core. Any client may send
 * them, without a key. A caller that is read more slowly has its answer all the same.
 */
export const lingerWindowMs = 50;
export const lingerBytes = 3 * mib;
/** A rest of a body up to this size is simply read, and the connection kept. */
export const lingerFromBytes = 64 * kib;

/** Silence after which an event stream gets a comment, and after which its headers go out (the contract's). */
export const keepAliveCommentMs = 15_000;

/** Events up to this size are copied, so that they go out in one plain write; larger ones are not worth a copy. */
export const oneWriteBytes = 16 * kib;

/** A caller's own id of its request is kept where it looks like this; any other is passed over. */
export const clientRequestIdPattern = /^[A-Za-z0-9._:-]{1,128}$/;
/** Path parameters: all that fits into a request line, so that a long one meets the same rules as any other. */
export const maxParamLength = maxHeaderBytes;

/** Deadlines of internal calls in milliseconds. */
export const deadlinesMs = {
  /** Reads and small writes: they take milliseconds, so this only ends what hangs. */
  quick: 10_000,
  /** A submission imports up to seven references of at most 10 s each. */
  submit: 90_000,
  /** One upstream speech request, longer than its default time-out of 600 s. */
  speech: 15 * 60_000,
  /** One upstream text request; the catalog's time-out (default 600 s) ends it earlier. */
  text: 60 * 60_000,
  /** An upload, bounded by the body's own time. */
  upload: requestTimeoutMs,
  /** A job's event stream; callers reconnect and see the current state first. */
  watch: 60 * 60_000,
} as const;

/**
 * The longest that a caller waits for an image job, in ms, from its request on: HTTP clients (undici's fetch among them) give
 * up an answer whose headers have not come after five minutes.
 */
export const imageWaitMs = 285_000;

/** Taking a job's watch up again, in milliseconds. */
export const followLimits = {
  /** First pause before the next watch; it doubles up to the longest. */
  minPauseMs: 100,
  /** A pod that is replaced is back, or left out, within a few of these. */
  maxPauseMs: 2_000,
  /** A watch that lasted this long was no replica that stops. */
  longWatchMs: 5_000,
  /** Silence of media after which the caller is told: twice its heartbeat. */
  patienceMs: 30_000,
  /** The same before anything was heard: the caller has no answer yet, and may come back sooner than we find one. */
  firstPatienceMs: 2_000,
} as const;

/** Items of a page, by what is listed. */
export const pageLimits = {
  jobs: { most: 100, default: 20 },
  files: { most: 1_000, default: 100 },
  webhooks: { most: 100, default: 20 },
  keys: { most: 100, default: 100 },
  requests: { most: 100, default: 20 },
  entries: { most: 1_000, default: 100 },
  holds: { most: 1_000, default: 100 },
} as const;
/** Pages of usage: OpenAI's numbers of buckets. A filter names as many keys as an account has, and more models than a catalog. */
export const usageLimits = {
  hours: { most: 168, default: 24 },
  days: { most: 31, default: 7 },
  models: 100,
  /** Seconds after now at which a file of usage ends, whatever `end_time` is: nothing is charged later, as far as clocks may differ. */
  aheadSeconds: 3_600,
} as const;
/** Characters of a value in a query: cursors and ids are shorter. */
export const maxQueryValueLength = 512;
