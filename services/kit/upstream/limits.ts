/** Bounds of the connections to configured upstreams, each with its reason. */
export const httpLimits = {
  /**
   * Connections to one origin. A stream holds one for minutes, so this bounds the streams in flight; a catalog's
   * `maxConcurrent` is the operator's own, lower bound. Well below the usual 65,536 descriptors of a process.
   */
  connectionsPerOrigin: 8192,
  /** Unread bytes of one answer after which its socket is no longer read: a slow reader holds upstream back. */
  unreadBytes: 64 * 1024,
  /**
   * A reader that leaves its socket unread for this long, at once or little by little, holds upstream back, in ms: bursts,
   * collections of garbage and slow disks take tens of ms, and a server that gives up on a blocked reader waits longer.
   */
  heldBackMs: 1000,
  /**
   * One that did so at once must have waited for upstream nearly this long in all, in ms, before a break counts as upstream's
   * own again: the megabytes in the kernels of both ends, and a break that lies behind them, come with hardly a wait.
   */
  caughtUpMs: 5000,
  /**
   * Bytes that the compressed body of one answer may come to: a few KiB can hold as many. The largest answers have 64 MiB, a long
   * stream with log probabilities four times that.
   */
  decodedBytes: 256 * 1024 * 1024,
  /** An idle connection is dropped after this long: common model servers close theirs after 5 s without saying so. */
  keepAliveMs: 4000,
  /** All response headers together; Node's own default. */
  headerBytes: 16 * 1024,
  /** What may still come after the last wanted byte, so that the connection can be used again; more closes it. */
  trailingBytes: 64 * 1024,
  /** Time for those bytes. */
  trailingMs: 1000,
  /** Times that a request goes out again because its kept-alive connection turned out to be closed. */
  staleRetries: 1,
  /**
   * How soon such a connection breaks after it was written to, in ms: its end was on its way by then. What breaks later had been read, and
   * a generation that was begun must not be begun, and paid for upstream, twice.
   */
  staleMs: 1_000,
} as const;

/**
 * A stream whose caller takes nothing for this long is ended where another account waits for its place, in ms: half of what
 * that one waits at most unless the catalog says otherwise, and no caller that reads pauses for as long.
 */
export const heldBackMs = 5_000;
/** How often such streams are looked for while an account waits, in ms. */
export const heldBackLookMs = 500;

/** Bounds of what upstreams answer. */
export const answerLimits = {
  /** A JSON answer: generated images in base64 reach tens of MiB. */
  jsonBytes: 64 * 1024 * 1024,
  /** One event of a stream: the last one repeats the whole output, images too. */
  eventBytes: 64 * 1024 * 1024,
  /** An error's body: only its code is looked at. */
  errorBytes: 64 * 1024,
  /** Time for an error's body once its status is known. */
  errorMs: 2000,
} as const;
