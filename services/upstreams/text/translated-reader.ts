// The part that all translations of a Responses stream share. `chat/from-responses.ts` and `messages/from-responses.ts` are made
// on it.

import type { Reason } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import type { SseEvent } from "#kit/upstream/sse.ts";
import { failureOfError, reasonOfError } from "./failure.ts";
import { UnseenNotes } from "./judging/hidden-output.ts";
import { isOutputDoneAfter } from "./judging/output-done.ts";
import { parseEvent } from "./parse-event.ts";
import { faultOf } from "./pieces.ts";
import type { AnswerEvent, Ending, ReportedUsage } from "./port.ts";
import { isText } from "./responses/complete-item.ts";
import { makePlain } from "./responses/plain-calls.ts";
import { isBare } from "./responses/visible-fields.ts";
import {
  type CutReason,
  failureOfCut,
  isByUs,
  reasonOfCut,
  type StreamReader,
} from "./stream-reader.ts";
import { isFinalType, UsageNote } from "./usage-note.ts";

/** Reads a Responses stream for callers of another format: when it ends, how, and its usage. A format decides how it is shown. */
export abstract class TranslatedReader implements StreamReader {
  isEnded = false;
  isOutputDone = false;
  readonly unseen = new UnseenNotes();
  /** The reported usage. */
  protected readonly note = new UsageNote();
  /** Where events are appended now. */
  protected out: AnswerEvent[] = [];
  /** True once a stop sequence was found. */
  protected isStopFound = false;
  /** Ends the stream. It waits until the events that came together with it were searched for usage. */
  #held: (() => void) | undefined;
  /** Does the answer's last event end the stream? */
  #isLast = false;
  #readEvents = 0;

  /** Has the caller the answer's beginning? */
  protected abstract get hasBegun(): boolean;
  /** Shows an event that neither ends the answer nor is an error. `response`: that of the event, or empty. */
  protected abstract body(event: JsonObject, response: JsonObject): void;
  /** Shows what is left of an answer, and its end. */
  protected abstract finish(response: JsonObject): void;
  /** Shows that the answer broke off. */
  protected abstract fail(reason: Reason, isByUs?: boolean): void;

  read(source: SseEvent, out: AnswerEvent[]): void {
    const event = parseEvent(source);
    if (this.isEnded || event === "nothing") return;
    if (event === "done") this.end("end", out);
    else if (event) this.take(event, out, source);
    else this.#hold(() => this.#breakOff("garbage"));
  }

  /** True where nothing more is shown. The upstream is read on for its usage where the caller has the answer's beginning. */
  get isStopped(): boolean {
    const isTold = this.#isLast && this.note.reported !== undefined;
    const isReadOn = this.#held !== undefined && !isTold && this.hasBegun;
    return this.isStopFound || (isReadOn && !this.isEnded);
  }

  get usage(): ReportedUsage | undefined {
    return this.note.reported;
  }

  /** Like {@link read}, for an event that is parsed already. */
  take(event: JsonObject, out: AnswerEvent[], source?: SseEvent): void {
    if (this.isEnded) return;
    this.out = out;
    const isPlain = isBare(event);
    if (!isPlain) this.note.note(event, isFinalType(event.type));
    const fault = isPlain ? undefined : faultOf(event, source);
    if (fault || !isText(event.type)) {
      this.#hold(() => this.#breakOff(fault ?? "garbage"), isFinalType(event.type));
      return;
    }
    if (!isPlain && makePlain(event) === undefined) return;
    this.#readEvents++;
    if (this.#held) {
      this.#isLast ||= isFinalType(event.type);
      return;
    }
    this.isOutputDone = isOutputDoneAfter(event, this.isOutputDone);
    this.unseen.noteEvent(event);
    const response = isJsonObject(event.response) ? event.response : {};
    if (event.type === "error") {
      const error = isJsonObject(event.error) ? event.error : event;
      this.#hold(() => this.#refuse(error));
    } else if (event.type === "response.failed") {
      const error = isJsonObject(response.error) ? response.error : {};
      this.#hold(() => this.#refuse(error), true);
    } else if (event.type === "response.completed" || event.type === "response.incomplete") {
      const found = { ...response, status: event.type.slice("response.".length) };
      this.#hold(() => this.finish(found), true);
    } else this.body(event, response);
  }

  settle(out: AnswerEvent[]): void {
    const isTold = this.#isLast && this.note.reported !== undefined;
    if (this.#held && (isTold || !this.isStopped)) this.end("end", out);
  }

  end(reason: CutReason, out: AnswerEvent[]): void {
    if (this.isEnded) return;
    this.out = out;
    if (this.#held) this.#held();
    else this.#breakOff(reason);
  }

  /** The first reason to end wins. */
  #hold(end: () => void, isLast = false): void {
    this.#held ??= end;
    this.#isLast ||= isLast;
  }

  #breakOff(reason: CutReason): void {
    if (this.isStopFound) this.finish({});
    else if (this.#readEvents === 0) throw failureOfCut(reason);
    else this.fail(reasonOfCut(reason), isByUs(reason));
  }

  cut(out: AnswerEvent[]): void {
    if (this.isEnded) return;
    this.out = out;
    if (this.#held) this.#held();
    else this.finish({ status: "incomplete" });
  }

  #refuse(error: JsonObject): void {
    if (this.isStopFound) {
      this.finish({});
      return;
    }
    if (!this.hasBegun && !this.note.reported) throw failureOfError(error);
    this.fail(reasonOfError(error));
  }

  /** Ends the stream with this frame. */
  protected terminal(frame: Buffer, ending: Ending, isByUs = false): void {
    this.isEnded = true;
    const usage = this.note.reported;
    this.out.push({ frame, text: "", ending, isByUs, ...(usage ? { usage } : {}) });
  }
}
