import { ErrorReason, type Reason } from "#kit/base/errors.ts";
import type { SseEvent } from "#kit/upstream/sse.ts";
import { UpstreamFailure } from "./failure.ts";
import type { UnseenNotes } from "./judging/hidden-output.ts";
import type { AnswerEvent, ReportedUsage } from "./port.ts";

/** Why a stream ended before its terminal event. */
export type CutReason =
  /** The connection broke. */
  | "cut"
  /** The body, or the protocol's own `[DONE]`, ended well; too early where no terminal event came before. */
  | "end"
  /** No byte for too long, or too long in all. */
  | "timeout"
  /** It went past a bound of ours. */
  | "too_large"
  /** What came is no event of the protocol. */
  | "garbage";

/** Did we end the stream, by a bound or a time-out of ours? What came of it was delivered, and is charged. */
export function isByUs(reason: CutReason): boolean {
  return reason === "timeout" || reason === "too_large";
}

/** The failure that a stream which ends before its first event means. */
export function failureOfCut(reason: CutReason): UpstreamFailure {
  return new UpstreamFailure(isByUs(reason) ? (reason as "timeout" | "too_large") : "garbage");
}

/** What its caller is told of a stream that ended for `reason`. */
export function reasonOfCut(reason: CutReason): Reason {
  return reason === "timeout" ? ErrorReason.UPSTREAM_TIMEOUT : ErrorReason.MODEL_REQUEST_FAILED;
}

/**
 * Turns the events of one upstream stream into those of the public stream. For any events that come in, what goes out ends with
 * exactly one event that has an `ending`.
 */
export interface StreamReader {
  /** Appends what `event` becomes to `out`. Throws `UpstreamFailure` where upstream fails before any output. */
  read(event: SseEvent, out: AnswerEvent[]): void;
  /** All events that were ready together are read: appends what was held back for one of them. May throw as `read`. */
  settle(out: AnswerEvent[]): void;
  /** The bytes ended: appends the terminal event where it is still owed. */
  end(reason: CutReason, out: AnswerEvent[]): void;
  /** Appends what is owed of an answer that goes no further: it has reached the bound of its output. */
  cut(out: AnswerEvent[]): void;
  /** The terminal event is out; nothing more is to be read. */
  readonly isEnded: boolean;
  /** Nothing more is shown; upstream is read on for its usage. */
  readonly isStopped?: boolean;
  /** All output that was begun has come; what is still to come is usage, or further output. */
  readonly isOutputDone: boolean;
  /** What upstream reported so far. */
  readonly usage: ReportedUsage | undefined;
  /** What the model did that was not shown. */
  readonly unseen: UnseenNotes;
}
