/** What became of an exchange with an upstream. */
export type UpstreamErrorKind =
  /** No connection, or it broke before a byte of the answer's head came. */
  | "unreachable"
  /** None of our places at it came free in time: it was never asked. */
  | "full"
  /** Connected, but the head, the next byte or the end did not come in time. */
  | "timeout"
  /** The connection broke within the body. */
  | "cut"
  /** The answer passed a size limit. */
  | "too_large"
  /** The variable of its key is not set: nothing was sent. */
  | "misconfigured";

/** An exchange that failed before or below HTTP. Its text holds no URL and nothing that upstream said. */
export class UpstreamError extends Error {
  override readonly name = "UpstreamError";
  readonly kind: UpstreamErrorKind;
  /** For `unreachable`: the time to connect ran out. True for every `timeout`. */
  readonly timedOut: boolean;
  /** For `unreachable`: a kept-alive connection was already closed at the other end. */
  readonly stale: boolean;

  constructor(
    kind: UpstreamErrorKind,
    details: { timedOut?: boolean; stale?: boolean; cause?: unknown } = {},
  ) {
    super(`upstream ${kind}`, { cause: details.cause });
    this.kind = kind;
    this.timedOut = details.timedOut ?? kind === "timeout";
    this.stale = details.stale ?? false;
  }
}
