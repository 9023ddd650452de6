import { ErrorReason, type Reason } from "#kit/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";
import type { SseEvent } from "#kit/upstream/sse.ts";
import { isPolicyCode, UpstreamFailure } from "../failure.ts";
import { dataFrame } from "../frame.ts";
import { textOfAnswer } from "../generated.ts";
import { parseEvent } from "../parse-event.ts";
import type { AnswerEvent, ReportedUsage } from "../port.ts";
import { hasPromptEcho, withoutPromptEchoes } from "../prompt-echoes.ts";
import { isText } from "../responses/complete-item.ts";
import type { CutReason, StreamReader } from "../stream-reader.ts";
import { usageOfChat } from "../usage.ts";
import { errorChunk } from "./chunks.ts";
import { endingOfFinish } from "./completion.ts";
import type { ChatFacts } from "./from-responses.ts";
import { ModelSplice } from "./model-splice.ts";

/**
 * Passes on a chat completion stream of an upstream's own: the model is shown by its public id, the role comes first,
 * the reason last, and usage (which upstream is always asked for) only where the caller wants it.
 */
export class NativeChat implements StreamReader {
  isEnded = false;
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
    else if (isJsonObject(chunk.error)) this.#refuse(chunk.error, out);
    else if (!Array.isArray(chunk.choices)) this.end("garbage", out);
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
      this.#shownUsage = chunk.usage;
    }
    const choice = choices[0];
    if (!isJsonObject(choice)) {
      // A chunk without a choice is usage, or a note of upstream's (content filters) that goes on as it is.
      if (!isJsonObject(chunk.usage)) out.push({ frame: this.#frame(chunk, source), text: "" });
      return;
    }
    const broken = errorOfChoice(choice);
    if (broken) {
      this.#refuse(broken, out);
      return;
    }
    const delta = isJsonObject(choice.delta) ? choice.delta : {};
    this.#role(chunk, delta, out);
    const text = textOfAnswer(chunk);
    if (choice.finish_reason !== null && choice.finish_reason !== undefined) {
      this.#finish = { chunk, reason: choice.finish_reason, text };
    } else {
      out.push({ frame: this.#frame(chunk, source), text });
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

  /** The chunk's bytes with our model in them: as they came where that is possible. */
  #frame(chunk: JsonObject, source: SseEvent): Uint8Array {
    const isWhole = isText(chunk.id) && chunk.object === "chat.completion.chunk";
    const isSilent = !isJsonObject(chunk.usage) && !hasPromptEcho(chunk);
    const frame = isWhole && isSilent ? this.#splice.frame(chunk, source) : undefined;
    return frame ?? dataFrame(this.#own(chunk));
  }

  /** The chunk as an object of ours, without usage. */
  #own(chunk: JsonObject): JsonObject {
    const { usage: _, ...rest } = withoutPromptEchoes(chunk);
    const { id, modelId: model, nowS, withUsage } = this.#facts;
    return {
      ...rest,
      id: isText(chunk.id) ? chunk.id : (this.#head.id ?? id),
      object: "chat.completion.chunk",
      created: chunk.created ?? this.#head.created ?? nowS(),
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
    const isPolicy = isPolicyCode(error.code);
    if (!this.#hasRead) throw new UpstreamFailure(isPolicy ? "policy" : "garbage");
    this.#fail(
      isPolicy ? ErrorReason.CONTENT_POLICY_VIOLATION : ErrorReason.MODEL_REQUEST_FAILED,
      out,
    );
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
