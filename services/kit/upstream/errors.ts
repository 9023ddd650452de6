// The faults of a call to an upstream. Drivers throw them, and those who try other upstreams judge by them.

/** The fault of an exchange with an upstream. */
export type UpstreamErrorKind =
  /** No connection could be made, or it broke before a byte of the answer's head came. */
  | "unreachable"
  /** None of our places at the upstream became free in time, so it got no request. */
  | "full"
  /** Connected, but the head, the next byte or the end did not come in time. */
  | "timeout"
  /** The connection broke within the body. */
  | "cut"
  /** The answer passed a size limit. */
  | "too_large"
  /** The upstream's key is not in its variable, or not in its file. No byte was sent. */
  | "misconfigured";

/** An exchange that failed before or below HTTP. Its text holds no URL and no word of the upstream. */
export class UpstreamError extends Error {
  override readonly name = "UpstreamError";
  readonly kind: UpstreamErrorKind;
  /** For `unreachable`: did the time to connect run out? True for every `timeout`. */
  readonly timedOut: boolean;
  /** For `timeout`: the time of the whole exchange ran out, while the answer perhaps still came. */
  readonly isOfWhole: boolean;
  /** For `unreachable`: was a kept-alive connection already closed at the other end? */
  readonly stale: boolean;

  constructor(
    kind: UpstreamErrorKind,
    details: { timedOut?: boolean; isOfWhole?: boolean; stale?: boolean; cause?: unknown } = {},
  ) {
    super(`upstream ${kind}`, { cause: details.cause });
    this.kind = kind;
    this.timedOut = details.timedOut ?? kind === "timeout";
    this.isOfWhole = details.isOfWhole ?? false;
    this.stale = details.stale ?? false;
  }
}
