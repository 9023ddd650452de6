import { ErrorReason, type Reason } from "#kit/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";
import type { SseEvent } from "#kit/upstream/sse.ts";
import { isPolicyCode, UpstreamFailure } from "../failure.ts";
import { textOfDeltaEvent, textOfItem } from "../generated.ts";
import { isOutputDoneAfter } from "../output-done.ts";
import { parseEvent } from "../parse-event.ts";
import type { AnswerEvent, Ending, ReportedUsage } from "../port.ts";
import { isText } from "../responses/complete-item.ts";
import type { CutReason, StreamReader } from "../stream-reader.ts";
import { chatUsageOf, usageOfResponse } from "../usage.ts";
import { ChunkWriter, errorChunk } from "./chunks.ts";
import { annotationOf, finishReasonOf } from "./completion.ts";
import { ToolCalls } from "./tool-calls.ts";

/** What a chat stream shows of itself. */
export interface ChatFacts {
  /** Of the completion. */
  id: string;
  modelId: string;
  /** Seconds since the epoch, where upstream does not say. */
  nowS: () => number;
  /** Did the caller ask for the usage chunk? */
  withUsage: boolean;
}

const nothing = Buffer.alloc(0);
/** Types of items whose text goes out, and is counted as it does. */
const shownTypes: ReadonlySet<JsonValue | undefined> = new Set([
  "message",
  "function_call",
  "custom_tool_call",
]);

/** Turns a Responses stream into chat completion chunks. Reads leniently: what was not streamed comes with its `done`. */
export class ChatFromResponses implements StreamReader {
  isEnded = false;
  isOutputDone = false;
  readonly #facts: ChatFacts;
  readonly #calls = new ToolCalls();
  /** Characters of each text part that went out. */
  readonly #sent = new Map<string, number>();
  /** Characters of each item's reasoning that were counted. */
  readonly #thought = new Map<JsonValue | undefined, number>();
  #writer: ChunkWriter | undefined;
  #out: AnswerEvent[] = [];
  #error: JsonObject | undefined;
  #readEvents = 0;

  constructor(facts: ChatFacts) {
    this.#facts = facts;
  }

  read(source: SseEvent, out: AnswerEvent[]): void {
    const event = parseEvent(source);
    if (event === "done") this.end("end", out);
    else if (event === undefined || !isText(event.type)) this.end("garbage", out);
    else this.take(event, out);
  }

  /** As {@link read}, for an event that is parsed already. */
  take(event: JsonObject, out: AnswerEvent[]): void {
    if (this.isEnded) return;
    this.#out = out;
    this.#readEvents++;
    this.isOutputDone = isOutputDoneAfter(event, this.isOutputDone);
    const response = isJsonObject(event.response) ? event.response : {};
    if (event.type === "error") this.#error ??= event;
    else if (event.type === "response.failed") {
      this.#refuse(isJsonObject(response.error) ? response.error : {}, response);
    } else if (!this.#error) this.#body(event, response);
  }

  settle(out: AnswerEvent[]): void {
    if (this.#error && !this.isEnded) this.end("end", out);
  }

  end(reason: CutReason, out: AnswerEvent[]): void {
    if (this.isEnded) return;
    this.#out = out;
    if (this.#error) this.#refuse(this.#error, {});
    else if (this.#readEvents === 0) {
      throw new UpstreamFailure(reason === "timeout" ? "timeout" : "garbage");
    } else {
      const isLate = reason === "timeout";
      this.#fail(isLate ? ErrorReason.UPSTREAM_TIMEOUT : ErrorReason.MODEL_REQUEST_FAILED);
    }
  }

  cut(out: AnswerEvent[]): void {
    if (this.isEnded) return;
    this.#out = out;
    this.#finish({ status: "incomplete" });
  }

  #body(event: JsonObject, response: JsonObject): void {
    switch (event.type) {
      case "keepalive":
        return;
      case "response.completed":
      case "response.incomplete":
        this.#finish({ ...response, status: `${event.type}`.slice("response.".length) });
        return;
    }
    const writer = this.#begin(response.created_at);
    switch (event.type) {
      case "response.output_text.delta":
        this.#text(writer, "content", event, event.delta, event.logprobs);
        break;
      case "response.refusal.delta":
        this.#text(writer, "refusal", event, event.delta);
        break;
      case "response.output_text.done":
        this.#text(writer, "content", event, this.#rest(event, event.text));
        break;
      case "response.refusal.done":
        this.#text(writer, "refusal", event, this.#rest(event, event.refusal));
        break;
      case "response.output_text.annotation.added":
        for (const annotation of annotationOf(event.annotation)) {
          this.#push(writer.delta({ annotations: [annotation] }));
        }
        break;
      default:
        if (!this.#call(writer, event)) this.#silent(event);
    }
  }

  #call(writer: ChunkWriter, event: JsonObject): boolean {
    const delta = this.#calls.take(event);
    if (!delta) return false;
    if (delta.chunk) this.#push(writer.delta({ tool_calls: [delta.chunk] }), delta.text);
    return true;
  }

  /** Reasoning has no place in a chat stream, but it is output all the same. */
  #silent(event: JsonObject): void {
    const { output_index: index, item } = event;
    const text = textOfDeltaEvent(event);
    if (text !== "") {
      this.#thought.set(index, (this.#thought.get(index) ?? 0) + text.length);
      this.#push(nothing, text);
    }
    if (event.type === "response.output_item.done") this.#reasoned(index, item);
  }

  /** Counts what an item that has no place in a chat stream has beyond its deltas. */
  #reasoned(index: JsonValue | undefined, item: JsonValue | undefined): void {
    if (!isJsonObject(item) || shownTypes.has(item.type)) return;
    const rest = textOfItem(item).slice(this.#thought.get(index) ?? 0);
    if (rest === "") return;
    this.#thought.set(index, (this.#thought.get(index) ?? 0) + rest.length);
    this.#push(nothing, rest);
  }

  #text(
    writer: ChunkWriter,
    field: "content" | "refusal",
    event: JsonObject,
    text: JsonValue | undefined,
    logprobs?: JsonValue,
  ): void {
    if (!isText(text)) return;
    const key = partKey(event);
    this.#sent.set(key, (this.#sent.get(key) ?? 0) + text.length);
    const hasLogprobs = Array.isArray(logprobs) && logprobs.length > 0;
    const shown = hasLogprobs ? { content: logprobs, refusal: null } : null;
    this.#push(writer.delta({ [field]: text }, shown), text);
  }

  /** What a part's deltas left out of its whole text. */
  #rest(event: JsonObject, whole: JsonValue | undefined): string {
    return typeof whole === "string" ? whole.slice(this.#sent.get(partKey(event)) ?? 0) : "";
  }

  #finish(response: JsonObject): void {
    const writer = this.#begin(response.created_at);
    if (this.#sent.size === 0 && this.#calls.count === 0) this.#showOutput(writer, response.output);
    const output = Array.isArray(response.output) ? response.output : [];
    for (const [index, item] of output.entries()) this.#reasoned(index, item);
    const usage = usageOfResponse(response.usage);
    const finish = writer.finish(finishReasonOf(response, this.#calls.count > 0));
    const ending = response.status === "incomplete" ? "incomplete" : "completed";
    const shown = this.#facts.withUsage ? chatUsageOf(response.usage) : undefined;
    if (shown) this.#push(finish);
    this.#terminal(shown ? writer.usage(shown) : finish, ending, usage);
  }

  /** An upstream that streams nothing but its last event still gives an answer. */
  #showOutput(writer: ChunkWriter, output: JsonValue | undefined): void {
    for (const [index, item] of (Array.isArray(output) ? output : []).entries()) {
      if (!isJsonObject(item)) continue;
      this.#call(writer, { type: "response.output_item.done", output_index: index, item });
      const parts = item.type === "message" && Array.isArray(item.content) ? item.content : [];
      for (const part of parts.filter(isJsonObject)) {
        this.#text(writer, "content", { output_index: index }, part.text);
        this.#text(writer, "refusal", { output_index: index }, part.refusal);
      }
    }
  }

  #refuse(error: JsonObject, response: JsonObject): void {
    const isPolicy = isPolicyCode(error.code);
    const usage = usageOfResponse(response.usage);
    if (!this.#writer && !usage) throw new UpstreamFailure(isPolicy ? "policy" : "garbage");
    const reason = isPolicy
      ? ErrorReason.CONTENT_POLICY_VIOLATION
      : ErrorReason.MODEL_REQUEST_FAILED;
    this.#fail(reason, usage);
  }

  #fail(reason: Reason, usage?: ReportedUsage): void {
    this.#begin(undefined);
    this.#terminal(errorChunk(reason), "failed", usage);
  }

  #terminal(frame: Buffer, ending: Ending, usage: ReportedUsage | undefined): void {
    this.isEnded = true;
    this.#out.push({ frame, text: "", ending, ...(usage ? { usage } : {}) });
  }

  /** The writer; the chunk with the role goes out first. */
  #begin(createdAt: JsonValue | undefined): ChunkWriter {
    if (this.#writer) return this.#writer;
    const { id, modelId: model, withUsage } = this.#facts;
    const created = typeof createdAt === "number" ? createdAt : this.#facts.nowS();
    this.#writer = new ChunkWriter({ id, created, model, withUsage });
    this.#push(this.#writer.delta({ role: "assistant", content: "", refusal: null }));
    return this.#writer;
  }

  #push(frame: Buffer, text = ""): void {
    this.#out.push({ frame, text });
  }
}

function partKey(event: JsonObject): string {
  return `${event.output_index}/${event.content_index}`;
}
