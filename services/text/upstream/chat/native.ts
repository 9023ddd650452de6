import { ErrorReason, type Reason } from "#kit/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";
import type { SseEvent } from "#kit/upstream/sse.ts";
import { fits, only } from "../allowed.ts";
import { failureOfError, reasonOfError, UpstreamFailure } from "../failure.ts";
import { dataFrame } from "../frame.ts";
import { textOfAnswer } from "../generated.ts";
import { parseEvent } from "../parse-event.ts";
import type { AnswerEvent, ReportedUsage } from "../port.ts";
import { isText } from "../responses/complete-item.ts";
import type { CutReason, StreamReader } from "../stream-reader.ts";
import { UnseenNotes } from "../unseen.ts";
import { usageOfChat } from "../usage.ts";
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
  #usage: ReportedUsage | undefined;
  #shownUsage: JsonObject | undefined;

  constructor(facts: ChatFacts) {
    this.#facts = facts;
    this.#splice = new ModelSplice(facts.modelId);
  }

  read(source: SseEvent, out: AnswerEvent[]): void {
    if (this.isEnded) return;
    const chunk = parseEvent(source);
    if (chunk === "done") this.end("end", out);
    else if (chunk === undefined) this.end("garbage", out);
    else if (isJsonObject(chunk.error)) {
      this.#usage = usageOfChat(chunk.usage) ?? this.#usage;
      this.#refuse(chunk.error, out);
    } else if (!Array.isArray(chunk.choices)) this.end("garbage", out);
    else {
      this.#hasRead = true;
      this.#take(chunk, chunk.choices, source, out);
    }
  }

  /** After the reason only usage is awaited. */
  get isOutputDone(): boolean {
    return this.#finish !== undefined;
  }

  settle(): void {}

  end(reason: CutReason, out: AnswerEvent[]): void {
    if (this.isEnded) return;
    if (!this.#hasRead) {
      throw new UpstreamFailure(reason === "timeout" ? "timeout" : "garbage");
    }
    // Some servers send no [DONE]; the reason has come, so the answer is whole.
    if (reason === "end" && this.#finish) this.#complete(out);
    else if (reason === "timeout") this.#fail(ErrorReason.UPSTREAM_TIMEOUT, out);
    else this.#fail(ErrorReason.MODEL_REQUEST_FAILED, out);
  }

  cut(out: AnswerEvent[]): void {
    if (this.isEnded) return;
    const choice = { index: 0, delta: {}, logprobs: null, finish_reason: "length" };
    const chunk = { ...this.#head, choices: [choice] };
    this.#finish = { chunk, reason: "length", text: "" };
    this.#complete(out);
  }

  #take(chunk: JsonObject, choices: JsonValue[], source: SseEvent, out: AnswerEvent[]): void {
    if (isJsonObject(chunk.usage)) {
      this.#usage = usageOfChat(chunk.usage) ?? this.#usage;
      this.#shownUsage = shownUsage(chunk.usage);
    }
    const choice = choices[0];
    // A chunk without a choice is usage, or a note of upstream's own (content filters, progress).
    if (!isJsonObject(choice)) return;
    const broken = errorOfChoice(choice);
    if (broken) {
      this.#refuse(broken, out);
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
    const shown = this.#facts.withUsage ? this.#shownUsage : undefined;
    const finish: AnswerEvent = { frame: dataFrame(this.#own(chunk)), text };
    const last: AnswerEvent = shown
      ? { frame: dataFrame({ ...this.#head, choices: [], usage: shown }), text: "" }
      : finish;
    if (shown) out.push(finish);
    last.ending = endingOfFinish(reason);
    if (this.#usage) last.usage = this.#usage;
    this.isEnded = true;
    out.push(last);
  }

  #refuse(error: JsonObject, out: AnswerEvent[]): void {
    if (!this.#hasRead) throw failureOfError(error);
    this.#fail(reasonOfError(error), out);
  }

  #fail(reason: Reason, out: AnswerEvent[]): void {
    this.isEnded = true;
    const usage = this.#usage ? { usage: this.#usage } : {};
    out.push({ frame: errorChunk(reason), text: "", ending: "failed", ...usage });
  }
}

/** What routers tell of a model that broke off, in the words of whoever it came from; undefined where it did not. */
export function errorOfChoice(choice: JsonObject): JsonObject | undefined {
  if (isJsonObject(choice.error)) return choice.error;
  return choice.finish_reason === "error" ? {} : undefined;
}
