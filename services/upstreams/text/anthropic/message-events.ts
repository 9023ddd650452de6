// Translates the events of a Messages stream into those of Responses, one after the other. `translation.ts` cuts the stream.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { callItem, reasoningItem, wholeCall } from "./items.ts";
import { stopOf } from "./stop.ts";
import type { ToolNames } from "./tools.ts";
import { laterUsage, responsesUsage } from "./usage.ts";

/** The block that is under way. */
interface OpenBlock {
  /** The item as it began. */
  item: JsonObject;
  /** Fields of a thinking block, as much of them as has come. */
  thought: JsonObject;
  /** The input of a call so far, as JSON. */
  json: string;
}

const emptyText = { type: "output_text", text: "" };

/** Stands for an event that no reader can understand, so that the answer ends there. */
export const garbage = "garbage";

/**
 * Turns the events of Messages into those of Responses, as few as a reader of Responses needs. The reader adds ids, numbers, and the
 * events around them.
 */
export class MessageEvents {
  readonly #names: ToolNames;
  /** Items so far. */
  #items = 0;
  /** Text parts of the message that is under way. 0: none is. */
  #parts = 0;
  #open: OpenBlock | undefined;
  #usage: JsonObject = {};
  #stop: JsonObject = {};

  constructor(names: ToolNames) {
    this.#names = names;
  }

  /** The events made of one. {@link garbage} in place of them where the message breaks the protocol. */
  take(event: JsonObject): JsonObject[] | typeof garbage {
    switch (event.type) {
      case "message_start":
        return this.#begin(event.message);
      case "content_block_start":
        return isJsonObject(event.content_block) ? this.#start(event.content_block) : [];
      case "content_block_delta":
        return isJsonObject(event.delta) ? this.#delta(event.delta) : [];
      case "content_block_stop":
        return this.#end();
      case "message_delta":
        return this.#later(event);
      case "message_stop":
        return this.#over();
      case "error":
        return [event];
      default:
        // New kinds of events are to be passed over.
        return typeof event.type === "string" ? [] : garbage;
    }
  }

  #begin(message: JsonValue | undefined): JsonObject[] {
    const found = isJsonObject(message) ? message : {};
    this.#usage = laterUsage(this.#usage, found.usage);
    const response = { status: "in_progress", output: [] };
    // The usage stands beside the response, so that callers do not see it before the end.
    return [{ type: "response.created", response, ...this.#reported() }];
  }

  #start(block: JsonObject): JsonObject[] {
    const before = this.#open ? this.#end() : [];
    switch (block.type) {
      case "text":
        return [...before, ...this.#text(block)];
      case "thinking":
      case "redacted_thinking": {
        const item = { type: "reasoning", summary: [] };
        const { thinking, ...thought } = block;
        const begun = this.#item({ item, thought: { ...thought, thinking: "" }, json: "" });
        return [...before, ...begun, ...this.#think(thinking)];
      }
      case "tool_use": {
        const item = { ...callItem(block, this.#names), status: "in_progress" };
        const begun = this.#item({ item, thought: {}, json: "" });
        const isGiven = isJsonObject(block.input) && Object.keys(block.input).length > 0;
        return [...before, ...begun, ...(isGiven ? this.#json(JSON.stringify(block.input)) : [])];
      }
      default:
        return before;
    }
  }

  #delta(delta: JsonObject): JsonObject[] {
    switch (delta.type) {
      case "text_delta":
        return this.#parts > 0 ? [this.#textDelta(delta.text)] : this.#text(delta);
      case "thinking_delta":
        return this.#think(delta.thinking);
      case "signature_delta":
        if (this.#open) this.#open.thought.signature = delta.signature ?? "";
        return [];
      case "input_json_delta":
        return this.#json(delta.partial_json);
      default:
        return [];
    }
  }

  /** Begins a text. */
  #text({ text }: JsonObject): JsonObject[] {
    const { begun, at } = this.#part();
    begun.push({ type: "response.content_part.added", ...at, part: emptyText });
    if (typeof text === "string" && text !== "") begun.push(this.#textDelta(text));
    return begun;
  }

  /** A part of the message that is under way. Where none is, one begins. */
  #part(): { begun: JsonObject[]; at: JsonObject } {
    const item = { type: "message", role: "assistant", status: "in_progress", content: [] };
    const begun = this.#parts === 0 ? [this.#added(item)] : [];
    return { begun, at: { output_index: this.#items - 1, content_index: this.#parts++ } };
  }

  #textDelta(delta: JsonValue | undefined): JsonObject {
    const at = { output_index: this.#items - 1, content_index: this.#parts - 1 };
    return { type: "response.output_text.delta", ...at, delta: delta ?? "" };
  }

  #think(thinking: JsonValue | undefined): JsonObject[] {
    if (!this.#open || typeof thinking !== "string" || thinking === "") return [];
    this.#open.thought.thinking = `${this.#open.thought.thinking ?? ""}${thinking}`;
    const at = { output_index: this.#items - 1, summary_index: 0 };
    return [{ type: "response.reasoning_summary_text.delta", ...at, delta: thinking }];
  }

  /** A custom tool's text can be read from its input only when that is whole. */
  #json(piece: JsonValue | undefined): JsonObject[] {
    if (!this.#open || typeof piece !== "string" || piece === "") return [];
    this.#open.json += piece;
    if (this.#open.item.type !== "function_call") return [];
    const type = "response.function_call_arguments.delta";
    return [{ type, output_index: this.#items - 1, delta: piece }];
  }

  /** Begins an item other than a message, which ends the message before. */
  #item(open: OpenBlock): JsonObject[] {
    const before = this.#endOfMessage();
    this.#open = open;
    return [...before, this.#added(open.item)];
  }

  #added(item: JsonObject): JsonObject {
    return { type: "response.output_item.added", output_index: this.#items++, item };
  }

  #done(item: JsonObject): JsonObject {
    return { type: "response.output_item.done", output_index: this.#items - 1, item };
  }

  #end(): JsonObject[] {
    const open = this.#open;
    this.#open = undefined;
    // The next block may be a further text of the message.
    if (!open) return [];
    const { item, thought, json } = open;
    return [this.#done(item.type === "reasoning" ? reasoningItem(thought) : wholeCall(item, json))];
  }

  #endOfMessage(): JsonObject[] {
    if (this.#parts === 0) return [];
    this.#parts = 0;
    return [this.#done({ type: "message", role: "assistant", status: "completed" })];
  }

  #later({ delta, usage }: JsonObject): JsonObject[] {
    this.#usage = laterUsage(this.#usage, usage);
    if (isJsonObject(delta)) this.#stop = { ...this.#stop, ...delta };
    const reported = this.#reported();
    // An event about no item: only its usage is of interest, also where the stream breaks off behind it.
    return reported ? [{ type: "response.output_item.done", item: null, ...reported }] : [];
  }

  #over(): JsonObject[] | typeof garbage {
    const { stop_reason: reason, stop_details: details } = this.#stop;
    const stop = stopOf(reason, details);
    if (!stop) return garbage;
    const last = [
      ...this.#end(),
      ...(stop.refusal === undefined ? [] : this.#refuse(stop.refusal)),
    ];
    const response: JsonObject = { status: stop.status, ...stop.fields, ...this.#reported() };
    return [...last, ...this.#endOfMessage(), { type: `response.${stop.status}`, response }];
  }

  #refuse(words: string): JsonObject[] {
    const { begun, at } = this.#part();
    return [...begun, { type: "response.refusal.delta", ...at, delta: words }];
  }

  #reported(): { usage: JsonObject } | undefined {
    const usage = responsesUsage(this.#usage);
    return usage && { usage };
  }
}
