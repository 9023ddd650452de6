// Adds the events of a Messages stream up to a whole message, and takes a whole message apart into such events.

import { exactObject } from "#kit/base/exact-json.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { anyObjectIn } from "../../call.ts";
import { largeAnswerBytes } from "../limits.ts";
import { stopFields } from "./stop-fields.ts";
import { noUsage } from "./usage.ts";

/** Puts a message together from the events of its stream. */
export class MessageCollector {
  #message: JsonObject | undefined;
  readonly #blocks: JsonObject[] = [];
  /** Arguments of the call that is under way. */
  #input = "";
  #isEnded = false;
  /** Characters of the collected parts. The message has at least as many bytes. */
  characters = 0;

  add(event: JsonObject): void {
    const block = this.#blocks.at(-1);
    switch (event.type) {
      case "message_start":
        if (isJsonObject(event.message)) this.#message = event.message;
        break;
      case "content_block_start":
        if (isJsonObject(event.content_block)) this.#blocks.push({ ...event.content_block });
        this.#input = "";
        break;
      case "content_block_delta":
        if (block && isJsonObject(event.delta)) this.#more(block, event.delta);
        break;
      case "content_block_stop":
        if (block?.type === "tool_use" && this.#input !== "") block.input = inputOf(this.#input);
        break;
      case "message_delta":
        this.#isEnded = true;
        this.#message = { ...this.#message, ...objectIn(event.delta), usage: event.usage ?? null };
    }
  }

  /** The whole message. Undefined where the stream did not add up to one. */
  message(): JsonObject | undefined {
    if (!this.#message || !this.#isEnded) return undefined;
    return { ...this.#message, content: this.#blocks };
  }

  #more(block: JsonObject, delta: JsonObject): void {
    for (const name of ["text", "thinking", "signature"]) {
      const more = delta[name];
      if (typeof more !== "string") continue;
      block[name] = `${block[name] ?? ""}${more}`;
      this.characters += more.length;
    }
    if (typeof delta.partial_json !== "string") return;
    this.#input += delta.partial_json;
    this.characters += delta.partial_json.length;
  }
}

/** The events of the stream that would have given a message. The last one is its `message_delta`. */
export function* eventsOfMessage(message: JsonObject): Generator<JsonObject> {
  const { content, stop_reason, stop_sequence, stop_details, usage, ...head } = message;
  const begun = { ...head, content: [], ...stopFields({}), usage: noUsage };
  yield { type: "message_start", message: begun };
  const blocks = Array.isArray(content) ? content.filter(isJsonObject) : [];
  for (const [index, block] of blocks.entries()) {
    const { begin, deltas } = inDeltas(block);
    yield { type: "content_block_start", index, content_block: begin };
    for (const delta of deltas) yield { type: "content_block_delta", index, delta };
    yield { type: "content_block_stop", index };
  }
  const delta = stopFields(message);
  yield { type: "message_delta", delta, usage: usage ?? noUsage };
}

/** A block as it begins in a stream, and what follows. */
function inDeltas(block: JsonObject): { begin: JsonObject; deltas: JsonObject[] } {
  const { type, text, thinking, signature, input } = block;
  switch (type) {
    case "text":
      return { begin: { ...block, text: "" }, deltas: [{ type: "text_delta", text: text ?? "" }] };
    case "thinking": {
      const deltas: JsonObject[] = [];
      if (thinking) deltas.push({ type: "thinking_delta", thinking });
      if (signature) deltas.push({ type: "signature_delta", signature });
      return { begin: { ...block, thinking: "", signature: "" }, deltas };
    }
    case "tool_use": {
      const partial_json = argumentsOf(input);
      return {
        begin: { ...block, input: {} },
        deltas: [{ type: "input_json_delta", partial_json }],
      };
    }
    default:
      return { begin: block, deltas: [] };
  }
}

/** The field under which Anthropic's guide to streamed tool calls sends a text that is no JSON, within an object. */
const invalidField = "INVALID_JSON";

/**
 * Arguments as an object, whose numbers are written again as the model wrote them. A text that is none, which models write and bounds
 * cut, stays as it is in an object of its own.
 */
function inputOf(text: string): JsonObject {
  // Numbers of a long text are not kept, because that would take the event loop too long.
  const found =
    text.length <= largeAnswerBytes ? exactObject(text) : anyObjectIn(Buffer.from(text));
  return found ?? { [invalidField]: text };
}

/** The text of arguments, as it was streamed where it is no JSON. */
function argumentsOf(input: JsonValue | undefined): string {
  const { [invalidField]: text, ...others } = objectIn(input);
  const isInvalid = typeof text === "string" && Object.keys(others).length === 0;
  return isInvalid ? text : JSON.stringify(input ?? {});
}

function objectIn(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}
