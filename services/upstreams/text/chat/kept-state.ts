// Carries state that an upstream wants back in the next turn, where a chat is served by an upstream of the Responses protocol.
// Its items of sealed reasoning become `reasoning_details`, in OpenRouter's form. State beside a message or a call stays beside
// it.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { isText } from "../responses/complete-item.ts";

/** Fields of messages and calls, as Gemini's servers name them. */
const besideNames = ["extra_content", "thought_signature"];

/** State that must be sent back with an item, a message or a call. */
export function stateBeside(said: JsonObject): JsonObject {
  const state: JsonObject = {};
  for (const name of besideNames) {
    const value = said[name] ?? null;
    if (value !== null) state[name] = value;
  }
  return state;
}

/** OpenRouter's name for the sealed reasoning of the Responses protocol. */
const responsesFormat = "openai-responses-v1";
/** The same for other companies' Responses (`xai-responses-v1`). */
const responsesFormats = /-responses-v\d+$/;

/**
 * State that must be sent back with a message made of these items: `reasoning_details`, and the state beside the items of text.
 * `before`: details so far.
 */
export function stateOfItems(items: readonly JsonObject[], before = 0): JsonObject {
  const details = items.filter(isSealedItem).map((item, at) => ({
    type: "reasoning.encrypted",
    ...(isText(item.id) ? { id: item.id } : {}),
    format: isText(item.format) ? item.format : responsesFormat,
    index: before + at,
    data: item.encrypted_content ?? null,
  }));
  const beside = items.filter(({ type }) => type === "message").map(stateBeside);
  return Object.assign(details.length > 0 ? { reasoning_details: details } : {}, ...beside);
}

/** The states of a stream. Its last event repeats them. */
export class KeptStates {
  readonly #seen = new Set<string>();
  #details = 0;

  /** The state that these items add, as a delta. Undefined: all of it was sent before. */
  take(items: readonly JsonObject[]): JsonObject | undefined {
    const fresh = items.filter((item) => {
      const { reasoning_details: _, ...beside } = stateOfItems([item]);
      const key = isSealedItem(item) ? `${item.encrypted_content}` : JSON.stringify(beside);
      if (key === "{}" || this.#seen.has(key)) return false;
      this.#seen.add(key);
      return true;
    });
    if (fresh.length === 0) return undefined;
    const state = stateOfItems(fresh, this.#details);
    if (Array.isArray(state.reasoning_details)) this.#details += state.reasoning_details.length;
    return state;
  }
}

function isSealedItem({ type, encrypted_content: sealed }: JsonObject): boolean {
  return type === "reasoning" && isText(sealed);
}

/** The items of reasoning from which a message's `reasoning_details` were made. Details of other protocols have no such form. */
export function reasoningItemsOf({ reasoning_details: details }: JsonObject): JsonObject[] {
  const entries: JsonValue[] = Array.isArray(details) ? details : [];
  return entries.filter(isJsonObject).flatMap(({ type, id, format, data }) => {
    const isOurs =
      type === "reasoning.encrypted" && isText(format) && responsesFormats.test(format);
    if (!isOurs || !isText(data)) return [];
    const named = isText(id) ? { id } : {};
    return [{ type: "reasoning", ...named, summary: [], encrypted_content: data }];
  });
}
