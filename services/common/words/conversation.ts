// Names the conversation of a text request by its beginning, so that its requests go to the same upstream and find their cached
// prompt.

import { hash } from "node:crypto";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";

/** Characters of a conversation's beginning that name it. Those after them are not looked at. */
const beginningCharacters = 4_096;

/**
 * The name that a conversation has by its beginning: by its instructions, and its messages to the end of the first one of its user. All
 * requests of a conversation have the same one, as long as the client leaves the beginning as it was. 44 characters.
 */
export function nameByBeginning(asked: JsonObject): string {
  return hash("sha256", beginningOf(asked), "base64");
}

function beginningOf(asked: JsonObject): string {
  let beginning = "";
  for (const text of textsOf(asked)) {
    if (typeof text === "string") beginning += `${text}\n`;
    if (beginning.length >= beginningCharacters) break;
  }
  return beginning.slice(0, beginningCharacters);
}

/** One after the other, because a body may have a million of them. */
function* textsOf({ instructions, input, messages }: JsonObject): Generator<JsonValue | undefined> {
  yield instructions;
  const list = input ?? messages;
  if (!Array.isArray(list)) return yield list;
  for (const item of list) {
    if (!isJsonObject(item)) continue;
    const { role, content } = item;
    if (Array.isArray(content)) for (const part of content) yield textOf(part);
    else yield content;
    if (role === "user") return;
  }
}

function textOf(part: JsonValue): JsonValue | undefined {
  return isJsonObject(part) ? part.text : undefined;
}
