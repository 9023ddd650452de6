import type { Reason } from "#kit/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";
import type { SseEvent } from "#kit/upstream/sse.ts";
import { fits, only } from "../allowed.ts";
import { failureOfError, reasonOfError } from "../failure.ts";
import { dataFrame } from "../frame.ts";
import { textOfAnswer } from "../generated.ts";
import { parseEvent } from "../parse-event.ts";
import { faultOf } from "../pieces.ts";
import type { AnswerEvent, ReportedUsage } from "../port.ts";
import { isText } from "../responses/complete-item.ts";
import {
  type CutReason,
  failureOfCut,
  isByUs,
  reasonOfCut,
  type StreamReader,
} from "../stream-reader.ts";
import { UnseenNotes } from "../unseen.ts";
import { chatNames, usageIn } from "../usage.ts";
import { UsageNote } from "../usage-note.ts";
import { errorChunk } from "./chunks.ts";
import { endingOfFinish } from "./completion.ts";
import type { ChatFacts } from "./from-responses.ts";
import { ModelSplice } from "./model-splice.ts";
import { chunkFields, isOddlySaid, plainlySaid, shownUsage } from "./shown.ts";

/**
 * Passes on a chat completion stream of an upstream's own: the model is shown by its public id, the role comes first,
 * the reason last, and usage (which upstream is always asked for) only where the caller wants it.
 */
export class NativeChat implements StreamReader {
  isEnded = false;
  readonly unseen = new UnseenNotes();
  readonly #facts: ChatFacts;
  readonly #splice: ModelSplice;
  #hasRead = false;
  #hasRole = false;
  /** The first chunk without its choices: what an added chunk shows. */
  #head: JsonObject = {};
  /** Held back until usage or the end has come, so that the terminal event is the last. */
  #finish: { chunk: JsonObject; reason: JsonValue; text: string } | undefined;
  readonly #usage = new UsageNote();
  /** A failure, held until what came along with it was looked at for usage. */
  #held: (() => void) | undefined;
  #out: AnswerEvent[] = [];

  constructor(facts: ChatFacts) {
    this.#facts = facts;
    this.#splice = new ModelSplice(facts.modelId);
  }

  read(source: SseEvent, out: AnswerEvent[]): void {
    if (this.isEnded) return;
    const chunk = parseEvent(source);
    this.#out = out;
    if (chunk === "done") {
      this.end("end", out);
      return;
    }
    if (chunk === undefined) {
      this.#hold(() => this.#breakOff("garbage"));
      return;
    }
    const fault = faultOf(chunk, source.data);
    const { error, choices } = chunk;
    this.#usage.note(chunk, this.#finish !== undefined || isLast(chunk));
    if (this.#held) return;
    if (isJsonObject(error)) this.#hold(() => this.#refuse(error));
    else if (fault) this.#hold(() => this.#breakOff(fault));
    else if (Array.isArray(choices)) {
      this.#hasRead = true;
      this.#take(chunk, choices, source, out);
    } else if (!this.#finish && !usageIn(chunk)) {
      this.#hold(() => this.#breakOff("garbage"));
    }
  }

  /** It has failed; upstream is read on for usage where the caller has its beginning. */
  get isStopped(): boolean {
    return this.#held !== undefined && this.#hasRead;
  }

  get usage(): ReportedUsage | undefined {
    return this.#usage.reported;
  }

  /** After the reason only usage is awaited. */
  get isOutputDone(): boolean {
    return this.#finish !== undefined;
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

  /** The first reason to end holds. */
  #hold(end: () => void): void {
    this.#held ??= end;
  }

  #breakOff(reason: CutReason): void {
    if (!this.#hasRead) throw failureOfCut(reason);
    // Some servers send no [DONE]; the reason has come, so the answer is whole.
    if (reason === "end" && this.#finish) this.#complete(this.#out);
    else this.#fail(reasonOfCut(reason), isByUs(reason));
  }

  cut(out: AnswerEvent[]): void {
    if (this.isEnded) return;
    if (this.#held) {
      this.end("cut", out);
      return;
    }
    const choice = { index: 0, delta: {}, logprobs: null, finish_reason: "length" };
    const chunk = { ...this.#head, choices: [choice] };
    this.#finish = { chunk, reason: "length", text: "" };
    this.#complete(out);
  }

  #take(chunk: JsonObject, choices: JsonValue[], source: SseEvent, out: AnswerEvent[]): void {
    const choice = choices[0];
    // A chunk without a choice is usage, or a note of upstream's own (content filters, progress).
    if (!isJsonObject(choice)) return;
    const broken = errorOfChoice(choice);
    if (broken) {
      this.#hold(() => this.#refuse(broken));
      return;
    }
    const said = isJsonObject(choice.delta) ? choice.delta : {};
    const isOdd = isOddlySaid(said);
    const delta = isOdd ? plainlySaid(said) : said;
    if (isOdd) choice.delta = delta;
    this.#role(chunk, delta, out);
    const text = textOfAnswer(chunk);
    this.unseen.noteChunk(chunk, text);
    if (choice.finish_reason !== null && choice.finish_reason !== undefined) {
      this.#finish = { chunk, reason: choice.finish_reason, text };
    } else {
      const frame = isOdd ? undefined : this.#asItCame(chunk, source);
      out.push({ frame: frame ?? dataFrame(this.#own(chunk)), text });
    }
  }

  /** Sends the chunk with the role where upstream did not begin with it. */
  #role(chunk: JsonObject, delta: JsonObject, out: AnswerEvent[]): void {
    if (this.#hasRole) return;
    this.#hasRole = true;
    this.#head = this.#own(chunk);
    if (isText(delta.role)) return;
    const first = { role: "assistant", content: "" };
    const choice = { index: 0, delta: first, logprobs: null, finish_reason: null };
    out.push({ frame: dataFrame({ ...this.#head, choices: [choice] }), text: "" });
  }

  /** The chunk's bytes with our model in them; undefined where it holds more or less than callers see. */
  #asItCame(chunk: JsonObject, source: SseEvent): Uint8Array | undefined {
    const isWhole = isText(chunk.id) && chunk.object === "chat.completion.chunk";
    const isShown = isWhole && !isJsonObject(chunk.usage) && fits(chunk, chunkFields);
    return isShown ? this.#splice.frame(chunk, source) : undefined;
  }

  /** What callers see of the chunk as an object of ours, without usage. */
  #own(chunk: JsonObject): JsonObject {
    const { usage: _, ...rest } = only(chunk, chunkFields);
    const { id, modelId: model, nowS, withUsage } = this.#facts;
    return {
      ...rest,
      id: isText(chunk.id) ? chunk.id : (this.#head.id ?? id),
      object: "chat.completion.chunk",
      created: rest.created ?? this.#head.created ?? nowS(),
      model,
      ...(withUsage ? { usage: null } : {}),
    };
  }

  #complete(out: AnswerEvent[]): void {
    const { chunk, reason, text } = this.#finish ?? { chunk: {}, reason: "stop", text: "" };
    const usage = this.#facts.withUsage ? this.#usage.objectIn(chatNames) : undefined;
    const shown = usage && shownUsage(usage);
    const finish: AnswerEvent = { frame: dataFrame(this.#own(chunk)), text };
    const last: AnswerEvent = shown
      ? { frame: dataFrame({ ...this.#head, choices: [], usage: shown }), text: "" }
      : finish;
    if (shown) out.push(finish);
    last.ending = endingOfFinish(reason);
    const reported = this.#usage.reported;
    if (reported) last.usage = reported;
    this.isEnded = true;
    out.push(last);
  }

  #refuse(error: JsonObject): void {
    if (!this.#hasRead) throw failureOfError(error);
    this.#fail(reasonOfError(error));
  }

  #fail(reason: Reason, isByUs = false): void {
    this.isEnded = true;
    const { reported } = this.#usage;
    const usage = reported ? { usage: reported } : {};
    this.#out.push({ frame: errorChunk(reason), text: "", ending: "failed", isByUs, ...usage });
  }
}

/** Says the chunk why the answer ended? */
function isLast({ choices }: JsonObject): boolean {
  const [choice] = Array.isArray(choices) ? choices : [];
  return (
    isJsonObject(choice) && choice.finish_reason !== null && choice.finish_reason !== undefined
  );
}

/** What routers tell of a model that broke off, in the words of the server that it came from; undefined where it did not. */
export function errorOfChoice(choice: JsonObject): JsonObject | undefined {
  if (isJsonObject(choice.error)) return choice.error;
  return choice.finish_reason === "error" ? {} : undefined;
}
