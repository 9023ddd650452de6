// Translates a Responses stream into a Messages stream, as it comes.

import type { Reason } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { StopSearch } from "../chat/stops.ts";
import { ToolCalls } from "../chat/tool-calls.ts";
import { typedFrame } from "../frame.ts";
import { textOfDeltaEvent, textOfItem } from "../generated-text.ts";
import { isText } from "../responses/complete-item.ts";
import { itemEvents } from "../responses/item-events.ts";
import { TranslatedReader } from "../translated-reader.ts";
import { responseNames } from "../usage.ts";
import { carrierOf } from "./carrier.ts";
import { errorEvent } from "./error-event.ts";
import { messageUsageOf, noUsage } from "./usage.ts";
import { type MessageHead, MessageWriter } from "./writer.ts";

/**
 * Where a model's reasoning goes: into thinking blocks with its text (`shown`) or without (`omitted`), or nowhere, for a caller that
 * asked for none (`hidden`).
 */
export type ShownThinking = "shown" | "omitted" | "hidden";

/** The facts that a message shows, and the parts of the answer that it leaves out. */
export interface MessageFacts extends MessageHead {
  /** Sequences at which the text ends. */
  stops: readonly string[];
  thinking: ShownThinking;
}

const nothing = Buffer.alloc(0);
/** Types of items whose text is sent, and counted as it is sent. */
const shownTypes: ReadonlySet<JsonValue | undefined> = new Set([
  "message",
  "function_call",
  "custom_tool_call",
]);

/** Turns a Responses stream into the events of a Messages stream. */
export class MessagesFromResponses extends TranslatedReader {
  readonly #facts: MessageFacts;
  readonly #collect: ((event: JsonObject) => void) | undefined;
  readonly #calls = new ToolCalls();
  readonly #stops: StopSearch;
  #writer: MessageWriter | undefined;
  /** Characters of each text part that came. */
  readonly #sent = new Map<string, number>();
  /** The text block that was written last, where its end may be held back. */
  #saying: string | undefined;
  /** Characters of all reasoning that was shown or counted. */
  #thought = 0;
  /** The same of the item under way, and the part that its last text belongs to. */
  #thinking: { item: JsonValue; characters: number; part: string } | undefined;
  /** The blocks of each item. */
  readonly #blocks = new Map<JsonValue, string[]>();
  #hasItems = false;
  #isRefused = false;

  /** `collect`: takes the events of an answer that comes whole. Absent: they become frames. */
  constructor(facts: MessageFacts, collect?: (event: JsonObject) => void) {
    super();
    this.#facts = facts;
    this.#collect = collect;
    this.#stops = new StopSearch(facts.stops);
  }

  protected get hasBegun(): boolean {
    return this.#writer !== undefined;
  }

  protected body(event: JsonObject): void {
    const writer = this.#begin();
    switch (event.type) {
      case "response.output_text.delta":
        this.#say(writer, event, textOfDeltaEvent(event));
        break;
      case "response.refusal.delta":
        this.#isRefused = true;
        this.#say(writer, event, textOfDeltaEvent(event));
        break;
      case "response.output_text.done":
        this.#say(writer, event, this.#restOf(event, event.text));
        this.#done(writer, textKey(event));
        break;
      case "response.refusal.done":
        this.#isRefused = true;
        this.#say(writer, event, this.#restOf(event, event.refusal));
        this.#done(writer, textKey(event));
        break;
      case "response.reasoning_text.delta":
      case "response.reasoning_summary_text.delta":
        this.#think(writer, event, textOfDeltaEvent(event));
        break;
      default:
        this.#item(writer, event);
    }
  }

  /** Handles events about items, calls and everything else. */
  #item(writer: MessageWriter, event: JsonObject): void {
    if (event.type === "response.output_item.added") {
      this.#hasItems = true;
      // Some servers begin every item under the same index.
      this.#endItem(writer, itemOf(event));
    }
    if (!this.#call(writer, event)) this.#count(textOfDeltaEvent(event));
    if (event.type !== "response.output_item.done" || !isJsonObject(event.item)) return;
    this.#hasItems = true;
    if (event.item.type === "reasoning") this.#reasoned(writer, event, event.item);
    else if (!shownTypes.has(event.item.type)) this.#count(textOfItem(event.item));
    this.#endItem(writer, itemOf(event));
  }

  #say(writer: MessageWriter, event: JsonObject, text: JsonValue | undefined): void {
    if (!isText(text)) return;
    const key = textKey(event);
    this.#sent.set(key, (this.#sent.get(key) ?? 0) + text.length);
    if (this.isStopFound) {
      this.#count(text);
      return;
    }
    if (this.#saying !== undefined && this.#saying !== key) this.#release(writer, this.#saying);
    this.#saying = key;
    this.#note(itemOf(event), key);
    this.#show(writer, key, this.#stops.take(text));
    this.#count(text);
    this.isStopFound = this.#stops.isFound;
  }

  /** The end of a part's whole text that its deltas left out. */
  #restOf(event: JsonObject, whole: JsonValue | undefined): string {
    return typeof whole === "string" ? whole.slice(this.#sent.get(textKey(event)) ?? 0) : "";
  }

  #show(writer: MessageWriter, key: string, text: string): void {
    if (text === "") return;
    writer.add(key, { type: "text", text: "", citations: null }, { type: "text_delta", text });
  }

  /** Sends the text that was held back. It is clear now that it begins no stop sequence. */
  #release(writer: MessageWriter, key: string): void {
    if (this.#saying !== key) return;
    this.#saying = undefined;
    if (!this.isStopFound) this.#show(writer, key, this.#stops.rest());
  }

  /** Shows reasoning and its summaries. The parts are paragraphs. */
  #think(writer: MessageWriter, event: JsonObject, text: JsonValue | undefined): void {
    if (!isText(text)) return;
    const item = itemOf(event);
    if (this.#thinking?.item !== item) this.#thinking = { item, characters: 0, part: "" };
    const part = `${event.content_index}/${event.summary_index}`;
    const isNext = this.#thinking.part !== "" && this.#thinking.part !== part;
    this.#thinking.part = part;
    this.#thinking.characters += text.length;
    this.#thought += text.length;
    this.#count(text);
    if (this.#facts.thinking !== "shown" || this.isStopFound) return;
    const thinking = (isNext ? "\n\n" : "") + text;
    this.#block(writer, item, { type: "thinking_delta", thinking });
  }

  /** Handles a whole item of reasoning: the end of its text, and its state. */
  #reasoned(writer: MessageWriter, event: JsonObject, item: JsonObject): void {
    const id = itemOf(event);
    const known = this.#thinking?.item === id ? this.#thinking.characters : 0;
    this.#think(writer, event, textOfItem(item).slice(known));
    const signature = carrierOf(item);
    if (!signature || this.#facts.thinking === "hidden" || this.isStopFound) return;
    this.#block(writer, id, { type: "signature_delta", signature });
    this.out.push({ frame: nothing, text: "", opaque: [signature] });
  }

  #block(writer: MessageWriter, item: JsonValue, delta: JsonObject): void {
    const key = `thinking/${item}`;
    this.#note(item, key);
    writer.add(key, { type: "thinking", thinking: "", signature: "" }, delta);
  }

  #call(writer: MessageWriter, event: JsonObject): boolean {
    const delta = this.#calls.take(event);
    if (!delta) return false;
    this.#count(delta.text);
    const { chunk } = delta;
    // No request offers a custom tool.
    if (this.isStopFound || !isJsonObject(chunk?.function)) return true;
    const { name, arguments: partial_json } = chunk.function;
    const key = `call/${chunk.index}`;
    if (chunk.id !== undefined) {
      this.#note(itemOf(event), key);
      writer.add(key, { type: "tool_use", id: chunk.id, name: name ?? "", input: {} });
    }
    if (isText(partial_json)) {
      writer.add(key, {}, { type: "input_json_delta", partial_json });
    }
    return true;
  }

  /** Counts output, with no frame of its own. */
  #count(text: string): void {
    if (text !== "") this.out.push({ frame: nothing, text });
  }

  #note(item: JsonValue, key: string): void {
    const keys = this.#blocks.get(item) ?? [];
    if (keys.includes(key)) return;
    keys.push(key);
    this.#blocks.set(item, keys);
  }

  #endItem(writer: MessageWriter, item: JsonValue): void {
    for (const key of this.#blocks.get(item) ?? []) {
      this.#done(writer, key);
      this.#sent.delete(key);
    }
    this.#blocks.delete(item);
    if (this.#thinking?.item === item) this.#thinking = undefined;
  }

  #done(writer: MessageWriter, key: string): void {
    this.#release(writer, key);
    writer.done(key);
  }

  protected finish(response: JsonObject): void {
    const writer = this.#begin();
    const output = Array.isArray(response.output) ? response.output.filter(isJsonObject) : [];
    this.#showRest(output);
    if (this.#saying !== undefined) this.#release(writer, this.#saying);
    writer.close();
    const end = writer.end({
      ...this.#stopOf(response),
      usage: messageUsageOf(this.note.objectIn(responseNames)) ?? noUsage,
    });
    this.#collect?.(end);
    this.terminal(typedFrame(end), response.status === "incomplete" ? "incomplete" : "completed");
  }

  /** Shows what is in the upstream's last event alone: all items where it streamed none, or missing calls. Counts other text. */
  #showRest(output: readonly JsonObject[]): void {
    if (!this.#hasItems && this.#sent.size === 0) {
      for (const [index, item] of output.entries()) {
        for (const event of itemEvents(item, index)) this.body(event);
      }
      return;
    }
    const others = output.filter(({ type }) => !shownTypes.has(type));
    const hidden = others.map(textOfItem).join("");
    this.#count(hidden.slice(this.#thought));
    for (const item of this.#calls.missingOf(output)) {
      // An index of its own, because the upstream may have streamed another item under this place.
      const output_index = `last/${this.#calls.count}`;
      this.body({ type: "response.output_item.done", output_index, item });
    }
  }

  #stopOf(response: JsonObject) {
    const details = response.incomplete_details;
    const isFiltered = isJsonObject(details) && details.reason === "content_filter";
    const plain = { stopSequence: null, stopDetails: null };
    if (this.isStopFound) {
      return { ...plain, stopReason: "stop_sequence", stopSequence: this.#stops.found ?? null };
    }
    if (this.#isRefused || isFiltered) {
      const stopDetails = { type: "refusal", category: null, explanation: null };
      return { ...plain, stopReason: "refusal", stopDetails };
    }
    if (response.status === "incomplete") return { ...plain, stopReason: "max_tokens" };
    return { ...plain, stopReason: this.#calls.count > 0 ? "tool_use" : "end_turn" };
  }

  protected fail(reason: Reason, isByUs = false): void {
    if (this.#saying !== undefined) this.#release(this.#begin(), this.#saying);
    this.terminal(errorEvent(reason), "failed", isByUs);
  }

  /** The writer. The beginning of the message is sent first. */
  #begin(): MessageWriter {
    this.#writer ??= new MessageWriter(this.#facts, (event) => {
      if (this.#collect) this.#collect(event);
      else this.out.push({ frame: typedFrame(event), text: "" });
    });
    return this.#writer;
  }
}

/** Items are told apart by their index, or by their id where the upstream gives no index. */
function itemOf({ output_index: index, item_id: id, item }: JsonObject): JsonValue {
  return index ?? id ?? (isJsonObject(item) ? (item.id ?? 0) : 0);
}

function textKey(event: JsonObject): string {
  return `text/${itemOf(event)}/${event.content_index}`;
}
