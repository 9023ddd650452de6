// Translates the calls in a Responses stream into pieces of a chat stream. Translation into Messages uses it, too.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { toolCallOf } from "./completion.ts";
import { stateBeside } from "./kept-state.ts";

interface Call {
  /** The first id of its item. */
  itemId: JsonValue | undefined;
  /** The call's place in `tool_calls`. */
  index: number;
  isCustom: boolean;
  /** Characters of its arguments that were sent. */
  sent: number;
  /** True once the state was sent that the upstream wants back beside the call. */
  hasState: boolean;
}

/** The addition of an event to `tool_calls`. */
export interface CallDelta {
  /** An entry of `delta.tool_calls`. Undefined: the event adds nothing. */
  chunk?: JsonObject;
  /** Generated text in the entry. */
  text: string;
}

/** The function and custom calls of a Responses stream as the deltas of a chat stream. */
export class ToolCalls {
  /** The call that was begun last under each index. */
  readonly #calls = new Map<JsonValue, Call>();
  #count = 0;
  readonly #ids = new Set<JsonValue | undefined>();

  /** Calls so far. */
  get count(): number {
    return this.#count;
  }

  /** The addition of an event. Undefined where the event is not about a call. */
  take(event: JsonObject): CallDelta | undefined {
    switch (event.type) {
      case "response.output_item.added":
      case "response.output_item.done":
        return isJsonObject(event.item) ? this.#item(event, event.item) : undefined;
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

  /**
   * Calls of a whole output that were not streamed. Only the number of calls decides, because servers may give the streamed calls new
   * names.
   */
  missingOf(output: readonly JsonValue[]): JsonObject[] {
    const calls = output.filter(isJsonObject).filter((item) => toolCallOf(item).length > 0);
    const more = calls.length - this.#count;
    const unknown = calls.filter((item) => !this.#ids.has(idOf(item)));
    return more > 0 ? unknown.slice(-more) : [];
  }

  #item(event: JsonObject, item: JsonObject): CallDelta | undefined {
    const key = keyOf(event, item.id);
    const isCustom = item.type === "custom_tool_call";
    if (!isCustom && item.type !== "function_call") return undefined;
    const value = isCustom ? item.input : item.arguments;
    const before = this.#calls.get(key);
    // Some servers begin every item under the same index.
    const isNext = event.type === "response.output_item.added" && before?.itemId !== item.id;
    const state = stateBeside(item);
    const hasState = Object.keys(state).length > 0;
    if (before && !isNext) {
      const rest = this.#whole(key, value);
      if (!hasState || before.hasState) return rest;
      before.hasState = true;
      return { ...rest, chunk: { index: before.index, ...rest.chunk, ...state } };
    }
    const given = typeof value === "string" ? value : "";
    const call = { itemId: item.id, index: this.#count++, isCustom, sent: given.length, hasState };
    this.#calls.set(key, call);
    this.#ids.add(idOf(item));
    const name = item.name ?? "";
    const named = isCustom
      ? { type: "custom", custom: { name, input: given } }
      : { type: "function", function: { name, arguments: given } };
    const text = `${name}${given}`;
    return { chunk: { index: call.index, id: idOf(item), ...named, ...state }, text };
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

/** Items are told apart by their index, or by their id where the upstream gives no index. */
function keyOf(event: JsonObject, id: JsonValue | undefined): JsonValue {
  return event.output_index ?? id ?? 0;
}

/** The id by which callers know a call. */
function idOf(item: JsonObject): JsonValue {
  return item.call_id ?? item.id ?? "";
}
