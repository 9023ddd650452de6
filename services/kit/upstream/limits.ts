// The bounds of every call to a configured upstream. Drivers and the HTTP client go by them.

/** Bounds of the connections to configured upstreams, each with its reason. */
export const httpLimits = {
  /**
   * Connections to one origin. A stream holds one for minutes, so this bounds the streams under way. A catalog's `maxConcurrent` is the
   * operator's own, lower bound. It is well below the usual 65,536 descriptors of a process.
   */
  connectionsPerOrigin: 8192,
  /** Unread bytes of one answer after which its socket is not read any further. So a slow reader holds its upstream back. */
  unreadBytes: 64 * 1024,
  /**
   * A reader that leaves its socket unread for this many ms, at once or little by little, holds its upstream back. Bursts, collections
   * of garbage and slow disks take tens of ms. A server that gives up on a blocked reader waits longer.
   */
  heldBackMs: 1000,
  /**
   * How long a reader that left its socket unread at once must have waited for its upstream after that, nearly, in ms. Only then a
   * break counts as the upstream's own again. Megabytes in the kernels of both ends, and a break behind them, come with hardly a wait.
   */
  caughtUpMs: 5000,
  /**
   * The most bytes of the compressed body of one answer after decoding. A few KiB can hold as many. The largest answers have 64 MiB,
   * and a long stream with log probabilities has four times that.
   */
  decodedBytes: 256 * 1024 * 1024,
  /** An idle connection is dropped after this many ms. Common model servers close theirs after 5 s without notice. */
  keepAliveMs: 4000,
  /** Bytes of all response headers together: Node's own default. */
  headerBytes: 16 * 1024,
  /** Bytes that may still come after the last wanted one, so that the connection can be used again. With more it is closed. */
  trailingBytes: 64 * 1024,
  /** Milliseconds for those bytes. */
  trailingMs: 1000,
  /** How often a request is sent again because its kept-alive connection turned out to be closed. */
  staleRetries: 1,
  /**
   * How soon such a connection breaks after it was written to, in ms. By then its end was under way. A connection that breaks later had
   * been read. A generation that has begun must not be begun, and paid for at the upstream, twice.
   */
  staleMs: 1_000,
} as const;

/**
 * While another account waits for a place, a stream is ended whose caller takes nothing for this long, in ms. That is half of the
 * longest wait unless the catalog says otherwise. No caller that reads pauses for as long.
 */
export const heldBackMs = 5_000;
/** Milliseconds between two searches for such streams, while an account waits. */
export const heldBackLookMs = 500;

/** Bounds of upstreams' answers. */
export const answerLimits = {
  /** Bytes of a JSON answer. Generated images in base64 reach tens of MiB. */
  jsonBytes: 64 * 1024 * 1024,
  /** Bytes of one event of a stream. The last one repeats the whole output, images too. */
  eventBytes: 64 * 1024 * 1024,
  /** Bytes of an error's body. Only its code is used. */
  errorBytes: 64 * 1024,
  /** Milliseconds for an error's body once its status is known. */
  errorMs: 2000,
} as const;
