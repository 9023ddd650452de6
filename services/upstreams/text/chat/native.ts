// Passes a chat stream of an upstream's on, and mends what servers leave out. Streams of Responses are translated by
// `from-responses.ts`.

import type { Reason } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { SseEvent } from "#kit/upstream/sse.ts";
import { fits, only } from "../allowed.ts";
import { failureOfError, reasonOfError, UpstreamFailure } from "../failure.ts";
import { dataFrame } from "../frame.ts";
import { textOfAnswer, textOfChoice } from "../generated-text.ts";
import { UnseenNotes } from "../judging/hidden-output.ts";
import { textLimits } from "../limits.ts";
import { opaqueIn } from "../opaque.ts";
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
import { chatNames } from "../usage.ts";
import { UsageNote } from "../usage-note.ts";
import { CallPieces } from "./call-pieces.ts";
import { errorChunk } from "./chunks.ts";
import { endingOfFinish } from "./completion.ts";
import type { ChatFacts } from "./from-responses.ts";
import { HeadSplice } from "./head-splice.ts";
import {
  chunkFields,
  isSimpleChunk,
  messageFields,
  plainlySaid,
  shownUsage,
} from "./visible-fields.ts";

const nothing = Buffer.alloc(0);

/**
 * Passes on a chat completion stream of the upstream's. Its id is genmesh's, and the model has its public id. The role comes first, the
 * reason for the end last. The upstream is always asked for usage, which is shown only where the caller wants it.
 */
export class NativeChat implements StreamReader {
  isEnded = false;
  readonly unseen = new UnseenNotes();
  readonly #facts: ChatFacts;
  readonly #splice: HeadSplice;
  readonly #calls: CallPieces;
  /** True once the caller has the beginning of a stream. */
  #hasBegun = false;
  /** The first chunk without its choices. An added chunk shows it. */
  #head: JsonObject = {};
  /** The last reason for the end that came. It is held back until usage or the end has come, because more output may come behind it. */
  #reason: string | undefined;
  /** Entries of sealed reasoning so far. */
  #sealed = 0;
  readonly #usage = new UsageNote();
  /** Ends the stream with a failure. It waits until the chunks that came together with it were searched for usage. */
  #held: (() => void) | undefined;
  #out: AnswerEvent[] = [];

  constructor(facts: ChatFacts) {
    this.#facts = facts;
    this.#splice = new HeadSplice(facts);
    this.#calls = new CallPieces(facts.id);
  }

  read(source: SseEvent, out: AnswerEvent[]): void {
    if (this.isEnded) return;
    const chunk = parseEvent(source);
    this.#out = out;
    if (chunk === "nothing") return;
    if (chunk === "done") {
      this.end("end", out);
      return;
    }
    if (chunk === undefined) {
      this.#fault("garbage");
      return;
    }
    const isSimple = isSimpleChunk(chunk);
    if (!isSimple) this.#look(chunk, source);
    if (this.#held) return;
    // A chunk without choices is usage, or a note of the upstream's (content filters, progress).
    const choice = (chunk.choices as JsonValue[] | null | undefined)?.[0];
    if (isJsonObject(choice)) this.#take(chunk, choice, source, isSimple);
  }

  /** Notes the usage in a chunk. Ends the stream where the chunk has an error or a fault. */
  #look(chunk: JsonObject, source: SseEvent): void {
    this.#usage.note(chunk, this.#reason !== undefined || isLast(chunk));
    const error = errorOfChunk(chunk);
    const fault = faultOf(chunk, source);
    if (error) this.#failure(error);
    else if (fault || !Array.isArray(chunk.choices ?? [])) this.#fault(fault ?? "garbage");
  }

  /** True after a failure. The upstream is read on for its usage where the caller has the answer's beginning. */
  get isStopped(): boolean {
    return this.#held !== undefined && this.#hasBegun;
  }

  get usage(): ReportedUsage | undefined {
    return this.#usage.reported;
  }

  /** After the reason for the end, only usage is awaited. */
  get isOutputDone(): boolean {
    return this.#reason !== undefined;
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

  /** The first reason to end wins. */
  #hold(end: () => void): void {
    this.#held ??= end;
  }

  #failure(error: JsonObject): void {
    this.#hold(() => this.#refuse(error));
  }

  #fault(reason: CutReason): void {
    this.#hold(() => this.#breakOff(reason));
  }

  #breakOff(reason: CutReason): void {
    if (!this.#hasBegun) throw failureOfCut(reason);
    // Some servers send no [DONE]. The reason for the end has come, so the answer is complete.
    if (reason === "end" && this.#reason !== undefined) this.#complete(this.#reason);
    else this.#fail(reasonOfCut(reason), isByUs(reason));
  }

  cut(out: AnswerEvent[]): void {
    if (this.isEnded) return;
    if (this.#held) {
      this.end("cut", out);
      return;
    }
    this.#out = out;
    this.#complete("length");
  }

  #take(chunk: JsonObject, choice: JsonObject, source: SseEvent, isSimple: boolean): void {
    const broken = errorOfChoice(choice);
    if (broken) {
      this.#failure(broken);
      return;
    }
    const reason = isText(choice.finish_reason) ? choice.finish_reason : undefined;
    // A choice without a delta is a note too, and does not begin a stream.
    if (isJsonObject(choice.delta)) this.#say(chunk, choice, choice.delta, source, isSimple);
    if (reason === undefined) return;
    if (!this.#hasBegun) this.#begin(chunk, {});
    this.#reason = reason;
  }

  #say(
    chunk: JsonObject,
    choice: JsonObject,
    said: JsonObject,
    source: SseEvent,
    isSimple: boolean,
  ): void {
    const plain = isSimple ? said : plainlySaid(said);
    choice.delta = plain;
    const text = isSimple ? textOfChoice(choice) : textOfAnswer(chunk);
    if (!isSimple) this.unseen.noteChunk(chunk);
    const pieces = Array.isArray(plain.tool_calls) ? this.#pieces(plain.tool_calls) : undefined;
    const delta = pieces === plain.tool_calls ? plain : { ...plain, tool_calls: pieces ?? [] };
    // Text beside a reason for the end is sent now. Only the reason waits.
    const mayBeBare = isText(choice.finish_reason) || pieces?.length === 0;
    const isBare = mayBeBare && !carries({ ...choice, delta });
    if (!this.#hasBegun) this.#begin(chunk, isBare ? {} : delta);
    const isOpen = choice.finish_reason === null || choice.finish_reason === undefined;
    const isSame = delta === said && isOpen && !isBare;
    const frame = isSame ? this.#asItCame(chunk, source, isSimple) : undefined;
    choice.delta = delta;
    choice.finish_reason = null;
    const details = plain.reasoning_details;
    const opaque = details === undefined ? undefined : opaqueIn(details);
    this.#sealed += opaque?.length ?? 0;
    if (this.#sealed > textLimits.pieces) {
      this.#fault("too_large");
      return;
    }
    if (isBare && text === "") return;
    const event: AnswerEvent = {
      frame: isBare ? nothing : (frame ?? dataFrame(this.#own(chunk))),
      text,
    };
    if (!isBare && opaque && opaque.length > 0) event.opaque = opaque;
    this.#out.push(event);
  }

  #pieces(calls: JsonValue[]): JsonValue[] {
    try {
      return this.#calls.take(calls);
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      this.#fault("too_large");
      return [];
    }
  }

  /** Sends the chunk with the role where the upstream does not begin with it. */
  #begin(chunk: JsonObject, delta: JsonObject): void {
    this.#hasBegun = true;
    this.#head = this.#own(chunk);
    if (!isText(delta.role)) this.#send({ role: "assistant", content: "" }, null);
  }

  /** Sends a chunk that was made here. */
  #send(delta: JsonObject, reason: string | null): void {
    this.#out.push({ frame: this.#framed(delta, reason), text: "" });
  }

  #framed(delta: JsonObject, reason: string | null): Buffer {
    const choice = { index: 0, delta, logprobs: null, finish_reason: reason };
    return dataFrame({ ...this.#head, choices: [choice] });
  }

  /**
   * The chunk's bytes with genmesh's id and model in them. Undefined where callers see more or fewer fields, or where it has another
   * head.
   */
  #asItCame(chunk: JsonObject, source: SseEvent, isSimple: boolean): Uint8Array | undefined {
    if (chunk.created !== this.#head.created) return undefined;
    const isWhole = chunk.object === "chat.completion.chunk" && !isJsonObject(chunk.usage);
    const isOurs = isSimple || (isWhole && fits(chunk, chunkFields));
    return isOurs ? this.#splice.frame(chunk, source) : undefined;
  }

  /** The fields of the chunk that callers see, as a new object without usage. */
  #own(chunk: JsonObject): JsonObject {
    const { usage: _, ...rest } = only(chunk, chunkFields);
    const { id, modelId: model, nowS, withUsage } = this.#facts;
    return {
      ...rest,
      id,
      object: "chat.completion.chunk",
      created: this.#head.created ?? createdOf(chunk) ?? nowS(),
      model,
      ...(withUsage ? { usage: null } : {}),
    };
  }

  #complete(reason: string): void {
    const usage = this.#usage.objectIn(chatNames);
    const shown = this.#facts.withUsage && usage ? shownUsage(usage) : undefined;
    const isCalling = reason === "stop" && this.#calls.hasCalls;
    if (!this.#hasBegun) this.#begin({}, {});
    const finish = this.#framed({}, isCalling ? "tool_calls" : reason);
    if (shown) this.#out.push({ frame: finish, text: "" });
    const frame = shown ? dataFrame({ ...this.#head, choices: [], usage: shown }) : finish;
    const reported = this.#usage.reported;
    this.isEnded = true;
    this.#out.push({
      frame,
      text: "",
      ending: endingOfFinish(reason),
      ...(reported ? { usage: reported } : {}),
    });
  }

  #refuse(error: JsonObject): void {
    if (!this.#hasBegun) throw failureOfError(error);
    this.#fail(reasonOfError(error));
  }

  #fail(reason: Reason, isByUs = false): void {
    this.isEnded = true;
    const { reported } = this.#usage;
    const usage = reported ? { usage: reported } : {};
    this.#out.push({ frame: errorChunk(reason), text: "", ending: "failed", isByUs, ...usage });
  }
}

/** Does the chunk have the reason for the answer's end? */
function isLast({ choices }: JsonObject): boolean {
  const [choice] = Array.isArray(choices) ? choices : [];
  return isJsonObject(choice) && isText(choice.finish_reason);
}

/** Does a choice have anything beside its role and the reason for its end? */
function carries({ delta, logprobs }: JsonObject): boolean {
  const said = isJsonObject(delta) ? only(delta, messageFields) : {};
  const hasSaid = Object.entries(said).some(([name, value]) => name !== "role" && !isEmpty(value));
  return hasSaid || isJsonObject(logprobs);
}

function isEmpty(value: JsonValue): boolean {
  return value === null || value === "" || (Array.isArray(value) && value.length === 0);
}

/** The time at which it was made, in seconds since the epoch. Undefined where it has none. */
export function createdOf({ created }: JsonObject): number | undefined {
  return typeof created === "number" && created > 0 ? created : undefined;
}

/** The error that a chunk or an answer has instead of choices, as an object. Undefined where it has none. */
export function errorOfChunk(chunk: JsonObject): JsonObject | undefined {
  const { error } = chunk;
  if (isJsonObject(error)) return error;
  if (isText(error)) return { message: error };
  // vLLM and FastChat.
  return chunk.object === "error" ? chunk : undefined;
}

/** The error that routers report of a model that broke off, in the words of its server. Undefined where there is none. */
export function errorOfChoice(choice: JsonObject): JsonObject | undefined {
  if (isJsonObject(choice.error)) return choice.error;
  return choice.finish_reason === "error" ? {} : undefined;
}
