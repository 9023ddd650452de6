import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { isText } from "../responses/complete-item.ts";

/**
 * What an upstream asks to be sent back in the next turn, where a chat stands on one of the Responses protocol: its items of sealed
 * reasoning are `reasoning_details`, in OpenRouter's form, and what it wrote beside a message or a call stays beside that.
 */

/** Fields of messages and calls, as Gemini's servers name them. */
const besideNames = ["extra_content", "thought_signature"];

/** What an item, a message or a call has to be sent back with it. */
export function stateBeside(said: JsonObject): JsonObject {
  const state: JsonObject = {};
  for (const name of besideNames) {
    const value = said[name] ?? null;
    if (value !== null) state[name] = value;
  }
  return state;
}

/** OpenRouter's name for what the Responses protocol seals. */
const responsesFormat = "openai-responses-v1";
/** Of other vendors' Responses likewise (`xai-responses-v1`). */
const responsesFormats = /-responses-v\d+$/;

/** What a message made of these items has to be sent back: `reasoning_details` and what stood beside the items of text. `before`: details so far. */
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

/** The states of a stream, whose last event repeats them. */
export class KeptStates {
  readonly #seen = new Set<string>();
  #details = 0;

  /** What these items add, as a delta; undefined: nothing that did not go out before. */
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

/** The items of reasoning that a message's `reasoning_details` were made of. Those of other protocols have no such form. */
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
