import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";

/** Characters of a conversation's beginning that name it. Those after them are not looked at. */
const beginningCharacters = 4_096;

/**
 * The name of a conversation among those of its account and model: its `prompt_cache_key`, or else its beginning, to the end of the first
 * message of its user. All requests of a conversation have the same one, as long as the client leaves the beginning as it was.
 */
export function stickOf(accountId: string, asked: JsonObject): string {
  const key = asked.prompt_cache_key;
  const isNamed = typeof key === "string" && key !== "";
  const name = isNamed ? ["key", key] : ["beginning", beginningOf(asked)];
  return JSON.stringify([accountId, asked.model, ...name]);
}

/** The beginning of a conversation, as far as it names it. */
export function beginningOf({ instructions, input, messages }: JsonObject): string {
  const list = input ?? messages;
  const items = Array.isArray(list) ? list : [{ role: "user", content: list }];
  const texts = [instructions];
  for (const item of items.filter(isJsonObject)) {
    texts.push(...textsIn(item.content));
    if (item.role === "user") break;
  }
  return texts.filter(isText).join("\n").slice(0, beginningCharacters);
}

function textsIn(content: JsonValue | undefined): (JsonValue | undefined)[] {
  if (!Array.isArray(content)) return [content];
  return content.filter(isJsonObject).map(({ text }) => text);
}

function isText(value: JsonValue | undefined): value is string {
  return typeof value === "string";
}
