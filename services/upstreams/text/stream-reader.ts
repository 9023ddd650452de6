// The agreement between the code that reads a stream's bytes and the readers that know its protocol, and the reasons why a stream
// is cut.

import { ErrorReason, type Reason } from "#kit/base/errors.ts";
import type { SseEvent } from "#kit/upstream/sse.ts";
import { UpstreamFailure } from "./failure.ts";
import type { UnseenNotes } from "./judging/hidden-output.ts";
import type { AnswerEvent, ReportedUsage } from "./port.ts";

/** The reason why a stream ended before its terminal event. */
export type CutReason =
  /** The connection broke. */
  | "cut"
  /** The body, or the protocol's own `[DONE]`, ended well. That is too early where no terminal event came before. */
  | "end"
  /** No byte came for too long, or the stream took too long in all. */
  | "timeout"
  /** The stream went past a bound of genmesh. */
  | "too_large"
  /** Bytes came that are no event of the protocol. */
  | "garbage";

/** Did genmesh end the stream, by a bound or a time-out? The part that came was delivered, and is charged. */
export function isByUs(reason: CutReason): boolean {
  return reason === "timeout" || reason === "too_large";
}

/** The failure that a stream means which ends before its first event. */
export function failureOfCut(reason: CutReason): UpstreamFailure {
  return new UpstreamFailure(isByUs(reason) ? (reason as "timeout" | "too_large") : "garbage");
}

/** The reason that the caller gets where a stream ended for `reason`. */
export function reasonOfCut(reason: CutReason): Reason {
  return reason === "timeout" ? ErrorReason.UPSTREAM_TIMEOUT : ErrorReason.MODEL_REQUEST_FAILED;
}

/**
 * Turns the events of one upstream stream into those of the public stream. For any events that it reads, its output ends with exactly
 * one event that has an `ending`.
 */
export interface StreamReader {
  /** Appends the events made of `event` to `out`. Throws `UpstreamFailure` where the upstream fails before any output. */
  read(event: SseEvent, out: AnswerEvent[]): void;
  /**
   * Called when all events that were ready together are read. Appends events that were held back for one of them. May throw like
   * `read`.
   */
  settle(out: AnswerEvent[]): void;
  /** Called when the bytes have ended. Appends the terminal event where it has not been sent. */
  end(reason: CutReason, out: AnswerEvent[]): void;
  /** Appends the missing end of an answer that stops here because it has reached the bound of its output. */
  cut(out: AnswerEvent[]): void;
  /** True once the terminal event was sent. Nothing more may be read. */
  readonly isEnded: boolean;
  /** True where nothing more is shown. The upstream is read on for its usage. */
  readonly isStopped?: boolean;
  /** True where all output that was begun has come. Only usage, or further output, can follow. */
  readonly isOutputDone: boolean;
  /** The usage that the upstream reported so far. */
  readonly usage: ReportedUsage | undefined;
  /** Hidden output of the model. */
  readonly unseen: UnseenNotes;
}
