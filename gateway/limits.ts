// Sizes, shares and times of requests and of their answers at the public port, each with its unit and reason. The rest is elsewhere:
// connections, pipelined requests and query parameters in kit/edge, a key's rate in gateway/admission, WebSockets and the console in
// limits of their own.

import { maxSettingsBytes } from "#kit/base/settings-body.ts";
import type { FairShareBounds } from "#kit/share/fair-share.ts";

const kib = 1024;
const mib = 1024 * kib;

/** Bodies by route family, by the API's contract: inline images on text, references on images and videos, prompts elsewhere. */
export const bodyLimitsBytes = {
  text: 64 * mib,
  references: 32 * mib,
  other: 1 * mib,
  /** Keys and alerts. */
  settings: maxSettingsBytes,
  /** In base64, the form in which its images are sent on, it is at most as large as a body with references. */
  imageForm: 23 * mib,
  /** Audio of OpenAI's largest size, and the fields beside it. */
  soundForm: 25 * mib + 64 * kib,
} as const;

/** All request bodies that are held at once, by default: eight of the largest, so that bodies alone never fill a small container. */
export const defaultMaxBytesInFlight = 512 * mib;

/**
 * The shares of these bytes. One account has three eighths: six inline images of the largest size. An account that is not known to pay
 * has an eighth, which is one body of the largest size. A body without room waits, unread.
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

/** A body up to this size has separate room, so a prompt never waits behind inline images. */
export const smallBodyBytes = 64 * kib;

/**
 * That room, beside the one of large bodies and shared in the same way. It is an eighth of it, a thousand of the largest small bodies.
 */
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

/** Files that are sent to callers. Each keeps a file or a connection to the store open, at the pace of its caller's reading. */
export const downloadShare: FairShareBounds = {
  places: 1_024,
  each: { places: 256, waiting: 256 },
  eachUnpaid: { places: 64, waiting: 64 },
  waitMs: 10_000,
};

/**
 * Bytes of repeated JSON answers that are sent to callers. They cost nothing, and are in memory until their callers have read them.
 * Each account has room for four of the largest, or thousands of usual length. A few more of it wait, because each was read.
 */
export const repeatedShare: FairShareBounds = {
  places: 128 * mib,
  each: { places: 32 * mib, waiting: 4 },
  waitMs: 10_000,
};

/**
 * Lists and reports that are being read. Each blocks the event loop for up to some 20 ms, and as many turns may come between two of
 * another request. An account's pages and programs ask for a few at once. Those behind the waiting ones are refused.
 */
export const readShare: FairShareBounds = {
  places: 8,
  each: { places: 2, waiting: 64 },
  waitMs: 10_000,
};
/** Entries that an export reads at a time, which takes a few ms. */
export const exportPage = 100;

/** Largest image that the file storage takes. It is also the most that a multipart body may hold back until its `purpose` is known. */
export const uploadBufferBytes = 20 * mib;
/** Bytes of one message of an upload, by the media service's bound. */
export const uploadChunkBytes = 1 * mib;
/** Most parts and text of a multipart form. Two fields are used, and SDKs add a few more. */
export const multipartLimits = {
  fields: 32,
  parts: 40,
  fieldNameSize: 200,
  fieldSize: 64 * kib,
  headerPairs: 20,
} as const;

/**
 * Request line and headers together. It is Node's default, written here because the API's contract answers larger ones with an error.
 */
export const maxHeaderBytes = 16 * kib;
/** Milliseconds for a caller to send its headers. Browsers and proxies need milliseconds. */
export const headersTimeoutMs = 20_000;
/** A body that brings no byte for this many ms counts as stalled. */
export const bodyIdleMs = 30_000;
/** A body that is not complete after this many ms counts as stalled. 64 MiB at 1 Mbit/s take 9 minutes. */
export const bodyTotalMs = 10 * 60_000;
/**
 * While another account waits for room, a body must come at this pace, in bytes a ms: 64 MiB in a minute. A body that is behind by
 * `bodyBehindMs` is refused. Otherwise a few accounts could fill the room with bodies that they announce and do not send.
 */
export const bodyBytesAMs = mib / 1_000;
/** Milliseconds for which a caller that sends may pause. */
export const bodyBehindMs = 1_000;
/** Milliseconds between two searches for such bodies, while an account waits. */
export const bodyBehindLookMs = 250;
/** Node's own bound on a request, for cases that the two above do not cover. */
export const requestTimeoutMs = bodyTotalMs + 60_000;
/** Milliseconds between two searches for stalled bodies. */
export const bodySweepMs = 1_000;
/** A caller that takes nothing of its answer for this many ms has left, by the API's contract. */
export const stalledReaderMs = 60_000;
/** Milliseconds between two searches for such callers, and so the delay in noticing one. */
export const readerSweepMs = 2_000;
/** Milliseconds between Node's searches for requests that take too long. */
export const connectionsCheckMs = 5_000;
/** Milliseconds of idle keep-alive connections: above the 60 s after which common load balancers drop theirs. */
export const keepAliveTimeoutMs = 72_000;
/**
 * After this many ms of silence on a connection TCP checks whether the other side is there. An answer may wait for minutes for its job,
 * and address translators in between forget a silent connection.
 */
export const tcpProbeAfterMs = 30_000;

/**
 * Connections that are held at once, each some 50 KB with its buffers: half a GiB. One address has half of them, so that no single
 * machine takes them all (IPv6: one /64). A proxy that `GENMESH_TRUST_PROXY` names serves many callers and may have all. At the total,
 * connections close for newcomers. Those that have shown no valid key come first, then those of the account that has most. Idle ones
 * close before those whose bodies come behind {@link bodyBytesAMs}.
 */
export const connectionLimits = { total: 10_000, each: 5_000 } as const;

/**
 * Lines a second in the log for requests that showed no valid key. They cost their callers nothing, so callers must not decide the
 * log's size. The metrics count all of them.
 */
export const anonymousLinesASecond = 20;

/** After an early refusal the rest of the body is read for this many ms, so that the caller gets the answer and no reset. */
export const lingerMs = 2_000;
/**
 * All such rests together are read at most at this pace in each window: 64 MiB a second, some hundredths of a core. Any client may send
 * them, without a key. A caller whose rest is read more slowly still gets its answer.
 */
export const lingerWindowMs = 50;
export const lingerBytes = 3 * mib;
/** A rest of a body up to this size is simply read, and the connection kept. */
export const lingerFromBytes = 64 * kib;

/** An event stream gets a comment after this many ms of silence. Its headers are sent after the same time, by the API's contract. */
export const keepAliveCommentMs = 15_000;
/** Milliseconds between two searches for silent answers. A comment comes earlier by at most that. */
export const silenceSweepMs = 250;

/** Events up to this size are copied, so that they are sent in one plain write. Larger ones are not worth a copy. */
export const oneWriteBytes = 16 * kib;

/** A caller's own id of its request is kept where it has this form. Any other is ignored. */
export const clientRequestIdPattern = /^[A-Za-z0-9._:-]{1,128}$/;
/** Path parameters may fill a request line, so that a long one follows the same rules as any other. */
export const maxParamLength = maxHeaderBytes;

/** Deadlines of internal calls in milliseconds. */
export const deadlinesMs = {
  /** Reads and small writes. They take milliseconds, so this only ends calls that get no answer. */
  quick: 10_000,
  /** A submission imports up to seven references of at most 10 s each. */
  submit: 90_000,
  /** One upstream speech request, longer than its default time-out of 600 s. */
  speech: 15 * 60_000,
  /** One upstream text request. The catalog's time-out (default 600 s) ends it earlier. */
  text: 60 * 60_000,
  /** An upload, bounded by the body's own time. */
  upload: requestTimeoutMs,
  /** A job's event stream. Callers reconnect and see the current state first. */
  watch: 60 * 60_000,
} as const;

/**
 * The longest time that a caller waits for an image job, in ms, from its request on. HTTP clients (undici's fetch among them) give up
 * an answer whose headers have not come after five minutes.
 */
export const imageWaitMs = 285_000;

/** Continuing a job's watch at another replica, in milliseconds. */
export const followLimits = {
  /** First pause before the next watch. It doubles up to the longest. */
  minPauseMs: 100,
  /** A pod that is replaced is back, or left out, within a few of these. */
  maxPauseMs: 2_000,
  /** A watch that lasted this long did not end because its replica was stopping. */
  longWatchMs: 5_000,
  /** After this silence of media the caller gets an error. It is twice media's heartbeat. */
  patienceMs: 30_000,
  /** The same before any message: the caller has no answer yet, and may try again sooner than the gateway finds a replica. */
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
  /**
   * Seconds after now at which a file of usage ends, no matter what `end_time` is. Nothing is charged later, as far as clocks may
   * differ.
   */
  aheadSeconds: 3_600,
} as const;
/** Characters of a value in a query. Cursors and ids are shorter. */
export const maxQueryValueLength = 512;
