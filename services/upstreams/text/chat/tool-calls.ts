import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";

interface Call {
  /** Its place in `tool_calls`. */
  index: number;
  isCustom: boolean;
  /** Characters of its arguments that went out. */
  sent: number;
}

/** What an event adds to `tool_calls`. */
export interface CallDelta {
  /** An entry of `delta.tool_calls`; undefined: it adds nothing. */
  chunk?: JsonObject;
  /** Generated text in it. */
  text: string;
}

/** The function and custom calls of a Responses stream as the deltas of a chat stream. */
export class ToolCalls {
  readonly #calls = new Map<JsonValue, Call>();

  /** Calls so far. */
  get count(): number {
    return this.#calls.size;
  }

  /** What an event adds; undefined where it is not about a call. */
  take(event: JsonObject): CallDelta | undefined {
    switch (event.type) {
      case "response.output_item.added":
      case "response.output_item.done":
        return isJsonObject(event.item)
          ? this.#item(keyOf(event, event.item.id), event.item)
          : undefined;
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta":
        return this.#more(keyOf(event, event.item_id), event.delta);
      case "response.function_call_arguments.done":
        return this.#whole(keyOf(event, event.item_id), event.arguments);
      case "response.custom_tool_call_input.done":
        return this.#whole(keyOf(event, event.item_id), event.input);
      default:
        return undefined;
    }
  }

  #item(key: JsonValue, item: JsonObject): CallDelta | undefined {
    const isCustom = item.type === "custom_tool_call";
    if (!isCustom && item.type !== "function_call") return undefined;
    const value = isCustom ? item.input : item.arguments;
    if (this.#calls.has(key)) return this.#whole(key, value);
    const given = typeof value === "string" ? value : "";
    const call = { index: this.#calls.size, isCustom, sent: given.length };
    this.#calls.set(key, call);
    const name = item.name ?? "";
    const named = isCustom
      ? { type: "custom", custom: { name, input: given } }
      : { type: "function", function: { name, arguments: given } };
    const text = `${name}${given}`;
    return { chunk: { index: call.index, id: item.call_id ?? item.id ?? "", ...named }, text };
  }

  #more(key: JsonValue, delta: JsonValue | undefined): CallDelta {
    const call = this.#calls.get(key);
    if (!call || typeof delta !== "string" || delta === "") return { text: "" };
    call.sent += delta.length;
    const { index } = call;
    const chunk = call.isCustom
      ? { index, custom: { input: delta } }
      : { index, function: { arguments: delta } };
    return { chunk, text: delta };
  }

  #whole(key: JsonValue, value: JsonValue | undefined): CallDelta {
    const sent = this.#calls.get(key)?.sent ?? 0;
    return this.#more(key, typeof value === "string" ? value.slice(sent) : "");
  }
}

/** Items are told apart by their index; by their id where upstream gives none. */
function keyOf(event: JsonObject, id: JsonValue | undefined): JsonValue {
  return event.output_index ?? id ?? 0;
}
