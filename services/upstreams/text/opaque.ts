// Finds the sealed state in an answer. The text service remembers it by its hash, so that the next turn brings it to its maker
// alone.

import type { JsonObject, JsonValue } from "#kit/base/json.ts";

/** Items nest content parts, and parts nest little more. Deeper values are the model's own data. */
const maxDepth = 4;

/** State that only its maker can read: every `encrypted_content` in an item or a list of items, and its counterparts in chat. */
export function opaqueIn(value: JsonValue | undefined): string[] {
  const found: string[] = [];
  if (typeof value === "object" && value !== null) collect(value, 0, found);
  return found;
}

function collect(value: JsonObject | readonly JsonValue[], depth: number, found: string[]): void {
  if (depth > maxDepth) return;
  if (Array.isArray(value)) {
    for (const entry of value) {
      if (typeof entry === "object" && entry !== null) collect(entry, depth + 1, found);
    }
    return;
  }
  const object = value as JsonObject;
  const isRouters = object.type === "reasoning.encrypted";
  for (const name in object) {
    const entry = object[name];
    if (typeof entry === "object" && entry !== null) collect(entry, depth + 1, found);
    else if (typeof entry !== "string" || entry === "") continue;
    else if (name === "encrypted_content" || (isRouters && name === "data")) found.push(entry);
  }
}
