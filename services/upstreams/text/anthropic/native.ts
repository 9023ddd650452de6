// Passes a stream of Anthropic's on to a caller of Messages. Callers of other protocols get it translated, by `translation.ts`.

import type { Reason } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import type { SseEvent } from "#kit/upstream/sse.ts";
import { failureOfError, reasonOfError } from "../failure.ts";
import { typedFrame } from "../frame.ts";
import { textOfEvent } from "../generated-text.ts";
import { UnseenNotes } from "../judging/hidden-output.ts";
import { errorEvent } from "../messages/error-event.ts";
import { stopFields } from "../messages/stop-fields.ts";
import type { MessageHead } from "../messages/writer.ts";
import { parseEvent } from "../parse-event.ts";
import { faultOf } from "../pieces.ts";
import type { AnswerEvent, Ending, ReportedUsage } from "../port.ts";
import {
  type CutReason,
  failureOfCut,
  isByUs,
  reasonOfCut,
  type StreamReader,
} from "../stream-reader.ts";
import { isFinalType, UsageNote } from "../usage-note.ts";
import { sealedIn } from "./sealed.ts";
import { stopOf } from "./stop.ts";
import { laterUsage } from "./usage.ts";
import { deltaTypes, visibleOutcomes, visibleUsage } from "./visible.ts";

/** The block that is under way. */
interface Block {
  /** Its place among those that the caller sees. */
  index: number;
  signature: string;
}

/**
 * Passes on a stream of Messages. Its id is genmesh's, and the model has its public id. Blocks and deltas of known kinds pass as they
 * came. The last event waits for the end of the stream, and has every field of the usage.
 */
export class NativeMessages implements StreamReader {
  isEnded = false;
  isOutputDone = false;
  readonly unseen = new UnseenNotes();
  readonly #head: MessageHead;
  readonly #types: ReadonlySet<unknown>;
  readonly #note = new UsageNote();
  #usage: JsonObject = {};
  /** The fields of the last event, as much of them as has come. */
  #last: JsonObject = {};
  #hasBegun = false;
  #blocks = 0;
  #open: Block | undefined;
  /** Ends the stream. It waits until the events that came together with it were searched for usage. */
  #held: (() => void) | undefined;
  #out: AnswerEvent[] = [];

  /** `types`: those of blocks that the caller sees. */
  constructor(head: MessageHead, types: ReadonlySet<unknown>) {
    this.#head = head;
    this.#types = types;
  }

  get usage(): ReportedUsage | undefined {
    return this.#note.reported;
  }

  /** True after a failure. The upstream is read on for its usage where the caller has the answer's beginning. */
  get isStopped(): boolean {
    return this.#held !== undefined && this.#hasBegun && !this.isEnded;
  }

  read(source: SseEvent, out: AnswerEvent[]): void {
    const event = parseEvent(source);
    if (this.isEnded || event === "nothing") return;
    this.#out = out;
    if (event === "done") {
      this.end("end", out);
      return;
    }
    if (!event) {
      this.#hold(() => this.#breakOff("garbage"));
      return;
    }
    this.#note.note(event, isFinalType(event.type));
    const fault = faultOf(event, source);
    if (fault) this.#hold(() => this.#breakOff(fault));
    else if (!this.#held) this.#take(event, source);
  }

  settle(out: AnswerEvent[]): void {
    if (this.#held && !this.isStopped) this.end("end", out);
  }

  end(reason: CutReason, out: AnswerEvent[]): void {
    if (this.isEnded) return;
    this.#out = out;
    if (this.#held) this.#held();
    else this.#breakOff(reason);
  }

  cut(out: AnswerEvent[]): void {
    if (this.isEnded) return;
    this.#out = out;
    if (this.#held) this.#held();
    else this.#finish("incomplete", { stop_reason: "max_tokens" });
  }

  /** The first reason to end wins. */
  #hold(end: () => void): void {
    this.#held ??= end;
  }

  #breakOff(reason: CutReason): void {
    if (!this.#hasBegun) throw failureOfCut(reason);
    this.#fail(reasonOfCut(reason), isByUs(reason));
  }

  #take(event: JsonObject, source: SseEvent): void {
    switch (event.type) {
      case "message_start":
        this.#begin(isJsonObject(event.message) ? event.message : {});
        break;
      case "content_block_start":
        if (isJsonObject(event.content_block)) this.#start(event, event.content_block, source);
        break;
      case "content_block_delta":
        if (isJsonObject(event.delta)) this.#delta(event, event.delta, source);
        break;
      case "content_block_stop":
        this.#stop(event, source);
        break;
      case "message_delta": {
        const { usage, delta, ...rest } = event;
        this.#usage = laterUsage(this.#usage, usage);
        this.#last = {
          ...this.#last,
          ...(isJsonObject(delta) ? delta : {}),
          ...visibleOutcomes(rest),
        };
        this.isOutputDone = true;
        break;
      }
      case "message_stop":
        this.#over();
        break;
      case "error":
        this.#hold(() => this.#refuse(isJsonObject(event.error) ? event.error : event));
    }
  }

  /** Sends the beginning of the message where it was not sent. */
  #begin(found: JsonObject): void {
    this.#usage = laterUsage(this.#usage, found.usage);
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    const { id, modelId: model } = this.#head;
    const message = { id, type: "message", role: "assistant", model, content: [] };
    const more = {
      ...stopFields({}),
      ...visibleOutcomes(found),
      usage: visibleUsage(this.#usage),
    };
    this.#send({ type: "message_start", message: { ...message, ...more } });
  }

  #start(event: JsonObject, block: JsonObject, source: SseEvent): void {
    if (!this.#hasBegun) this.#begin({});
    this.#open = undefined;
    if (!this.#types.has(block.type)) return;
    this.#open = { index: this.#blocks++, signature: "" };
    this.isOutputDone = false;
    this.unseen.noteMessage(event);
    const sealed = sealedIn(block).map(({ value }) => value);
    this.#pass(event, source, sealed);
  }

  #delta(event: JsonObject, delta: JsonObject, source: SseEvent): void {
    if (!this.#open || !deltaTypes.has(delta.type)) return;
    if (typeof delta.signature === "string") this.#open.signature += delta.signature;
    this.unseen.noteMessage(event);
    const sealed = sealedIn(delta.citation ?? null).map(({ value }) => value);
    this.#pass(event, source, sealed);
  }

  #stop(event: JsonObject, source: SseEvent): void {
    if (!this.#open) return;
    const { signature } = this.#open;
    this.#pass(event, source, signature === "" ? [] : [signature]);
    this.#open = undefined;
    this.isOutputDone = true;
  }

  /** Passes an event of the open block on, with its bytes where the block has the place that it had. */
  #pass(event: JsonObject, source: SseEvent, opaque: readonly string[] = []): void {
    const index = this.#open?.index ?? 0;
    const isSame = event.index === index && source.name === event.type;
    const frame = (isSame && source.frame) || typedFrame({ ...event, index });
    const text = textOfEvent(event);
    this.#out.push({ frame, text, ...(opaque.length > 0 && { opaque }) });
  }

  #over(): void {
    const stop = stopOf(this.#last.stop_reason);
    if (!stop) this.#hold(() => this.#breakOff("garbage"));
    // A tool of the host has more to do. To a caller of Messages that is an end like others.
    else this.#hold(() => this.#finish(stop.status === "failed" ? "completed" : stop.status));
  }

  #finish(ending: Ending, instead: JsonObject = {}): void {
    this.#begin({});
    const open = this.#open?.index;
    if (open !== undefined) this.#send({ type: "content_block_stop", index: open });
    const last = { ...this.#last, ...instead };
    const usage = visibleUsage(this.#usage);
    const event = {
      type: "message_delta",
      delta: stopFields(last),
      usage,
      ...visibleOutcomes(last),
    };
    this.#terminal(typedFrame(event), ending);
  }

  #refuse(error: JsonObject): void {
    if (!this.#hasBegun && !this.#note.reported) throw failureOfError(error);
    this.#fail(reasonOfError(error));
  }

  #fail(reason: Reason, byUs = false): void {
    this.#terminal(errorEvent(reason), "failed", byUs);
  }

  #terminal(frame: Buffer, ending: Ending, byUs = false): void {
    this.isEnded = true;
    const usage = this.#note.reported;
    this.#out.push({ frame, text: "", ending, isByUs: byUs, ...(usage && { usage }) });
  }

  #send(event: JsonObject): void {
    this.#out.push({ frame: typedFrame(event), text: "" });
  }
}
