// Translates a chat stream into a Messages stream, as it comes.

import { ErrorReason, type Reason, reasonOfName } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { SseEvent } from "#kit/upstream/sse.ts";
import { NativeChat } from "../chat/native.ts";
import { StopSearch } from "../chat/stops.ts";
import { typedFrame } from "../frame.ts";
import type { UnseenNotes } from "../judging/hidden-output.ts";
import type { AnswerEvent, ReportedUsage } from "../port.ts";
import { isText } from "../responses/complete-item.ts";
import type { CutReason, StreamReader } from "../stream-reader.ts";
import { errorEvent } from "./error-event.ts";
import type { MessageFacts } from "./from-responses.ts";
import { messageUsageOfChat, noUsage } from "./usage.ts";
import { type MessageEnd, MessageWriter } from "./writer.ts";

const nothing = Buffer.alloc(0);

/**
 * Turns a stream of Chat Completions into the events of a Messages stream. {@link NativeChat} makes plain chunks of the upstream's, and
 * decides how the stream ends.
 */
export class MessagesFromChat implements StreamReader {
  isEnded = false;
  readonly #chat: NativeChat;
  readonly #facts: MessageFacts;
  readonly #collect: ((event: JsonObject) => void) | undefined;
  readonly #stops: StopSearch;
  #writer: MessageWriter | undefined;
  #out: AnswerEvent[] = [];
  /** The block that is written now, and the number of those before it. */
  #open: { kind: string; key: string } | undefined;
  #blocks = 0;
  #isRefused = false;
  #finish = "stop";
  #usage: JsonObject | undefined;

  /** `collect`: takes the events of an answer that comes whole. Absent: they become frames. */
  constructor(facts: MessageFacts, nowS: () => number, collect?: (event: JsonObject) => void) {
    const { id, modelId } = facts;
    this.#chat = new NativeChat({ id, modelId, nowS, withUsage: true });
    this.#facts = facts;
    this.#collect = collect;
    this.#stops = new StopSearch(facts.stops);
  }

  get isOutputDone(): boolean {
    return this.#chat.isOutputDone;
  }

  /** True behind a stop sequence too. The upstream does not know it and goes on. */
  get isStopped(): boolean {
    return this.#stops.isFound || this.#chat.isStopped;
  }

  get usage(): ReportedUsage | undefined {
    return this.#chat.usage;
  }

  get unseen(): UnseenNotes {
    return this.#chat.unseen;
  }

  read(source: SseEvent, out: AnswerEvent[]): void {
    this.#pass(out, (chunks) => this.#chat.read(source, chunks));
  }

  settle(out: AnswerEvent[]): void {
    this.#pass(out, (chunks) => this.#chat.settle(chunks));
  }

  end(reason: CutReason, out: AnswerEvent[]): void {
    // Behind a stop sequence the answer is complete, however its stream ends.
    if (this.#stops.isFound && !this.isEnded) this.#complete(out, "completed");
    else this.#pass(out, (chunks) => this.#chat.end(reason, chunks));
  }

  cut(out: AnswerEvent[]): void {
    if (this.#stops.isFound && !this.isEnded) this.#complete(out, "completed");
    else this.#pass(out, (chunks) => this.#chat.cut(chunks));
  }

  /** Shows the chunks that `read` gives. */
  #pass(out: AnswerEvent[], read: (chunks: AnswerEvent[]) => void): void {
    if (this.isEnded) return;
    this.#out = out;
    const chunks: AnswerEvent[] = [];
    read(chunks);
    for (const event of chunks) this.#take(event);
  }

  #take({ frame, text, ending, isByUs, usage }: AnswerEvent): void {
    if (text !== "") this.#out.push({ frame: nothing, text });
    const chunk = frame.length > 0 ? chunkIn(frame) : {};
    const reported = usage ? { usage } : {};
    if (ending === "failed" && !this.#stops.isFound) {
      this.isEnded = true;
      const told = { frame: errorEvent(reasonIn(chunk)), text: "", ending, ...reported };
      this.#out.push({ ...told, ...(isByUs ? { isByUs } : {}) });
      return;
    }
    this.#show(chunk);
    if (!ending) return;
    this.#complete(this.#out, ending === "failed" ? "completed" : ending);
  }

  #show({ choices, usage }: JsonObject): void {
    if (isJsonObject(usage)) this.#usage = usage;
    const [choice] = Array.isArray(choices) ? choices : [];
    if (!isJsonObject(choice)) return;
    if (isText(choice.finish_reason)) this.#finish = choice.finish_reason;
    this.#begin();
    if (isJsonObject(choice.delta)) this.#delta(choice.delta);
  }

  #delta({ reasoning_content, reasoning, content, refusal, tool_calls }: JsonObject): void {
    if (this.#stops.isFound) return;
    this.#think(isText(reasoning_content) ? reasoning_content : reasoning);
    this.#say(content);
    if (isText(refusal)) this.#isRefused = true;
    this.#say(refusal);
    for (const call of Array.isArray(tool_calls) ? tool_calls : []) {
      if (isJsonObject(call)) this.#call(call);
    }
  }

  #think(thinking: JsonValue | undefined): void {
    if (!isText(thinking) || this.#facts.thinking !== "shown") return;
    const key = this.#keyOf("thinking");
    const block = { type: "thinking", thinking: "", signature: "" };
    this.#begin().add(key, block, { type: "thinking_delta", thinking });
  }

  #say(text: JsonValue | undefined): void {
    if (!isText(text) || this.#stops.isFound) return;
    const key = this.#keyOf("text");
    this.#text(key, this.#stops.take(text));
  }

  #text(key: string, text: string): void {
    if (text === "") return;
    const block = { type: "text", text: "", citations: null };
    this.#begin().add(key, block, { type: "text_delta", text });
  }

  #call({ index, id, function: called }: JsonObject): void {
    if (!isJsonObject(called)) return;
    const key = this.#keyOf(`call/${index}`);
    const block = { type: "tool_use", id: id ?? "", name: called.name ?? "", input: {} };
    const { arguments: partial_json } = called;
    const delta = isText(partial_json) ? { type: "input_json_delta", partial_json } : undefined;
    this.#begin().add(key, block, delta);
  }

  /** The block of this kind that is open. It begins where another one was open. */
  #keyOf(kind: string): string {
    if (this.#open?.kind === kind) return this.#open.key;
    const isCall = kind.startsWith("call/");
    // Pieces of several calls may come in turns, so a call ends with the answer.
    if (!this.#open?.kind.startsWith("call/")) this.#close();
    this.#open = { kind, key: isCall ? kind : `${kind}/${this.#blocks++}` };
    return this.#open.key;
  }

  /** Ends the open block. Text that was held back begins no stop sequence. */
  #close(): void {
    if (!this.#open) return;
    const { kind, key } = this.#open;
    if (kind === "text" && !this.#stops.isFound) this.#text(key, this.#stops.rest());
    this.#writer?.done(key);
    this.#open = undefined;
  }

  #complete(out: AnswerEvent[], ending: "completed" | "incomplete"): void {
    this.#out = out;
    const writer = this.#begin();
    this.#close();
    writer.close();
    this.isEnded = true;
    const usage = messageUsageOfChat(this.#usage) ?? noUsage;
    const end = writer.end({ ...this.#stop(), usage });
    this.#collect?.(end);
    const reported = this.#chat.usage;
    const told = { frame: typedFrame(end), text: "", ending };
    out.push({ ...told, ...(reported ? { usage: reported } : {}) });
  }

  #stop(): Omit<MessageEnd, "usage"> {
    const plain = { stopSequence: null, stopDetails: null };
    const { found } = this.#stops;
    if (found !== undefined) return { ...plain, stopReason: "stop_sequence", stopSequence: found };
    if (this.#isRefused || this.#finish === "content_filter") {
      const stopDetails = { type: "refusal", category: null, explanation: null };
      return { ...plain, stopReason: "refusal", stopDetails };
    }
    return { ...plain, stopReason: stopReasons[this.#finish] ?? "end_turn" };
  }

  /** The writer. The beginning of the message is sent first. */
  #begin(): MessageWriter {
    this.#writer ??= new MessageWriter(this.#facts, (event) => {
      if (this.#collect) this.#collect(event);
      else this.#out.push({ frame: typedFrame(event), text: "" });
    });
    return this.#writer;
  }
}

const stopReasons: Readonly<Record<string, string>> = {
  length: "max_tokens",
  tool_calls: "tool_use",
};

function chunkIn(frame: Uint8Array): JsonObject {
  const text = Buffer.from(frame.buffer, frame.byteOffset, frame.length).toString();
  const value: unknown = JSON.parse(text.slice(text.indexOf("{")));
  return isJsonObject(value) ? value : {};
}

function reasonIn({ error }: JsonObject): Reason {
  const code = isJsonObject(error) ? `${error.code}` : "";
  return reasonOfName(code.toUpperCase()) ?? ErrorReason.MODEL_REQUEST_FAILED;
}
