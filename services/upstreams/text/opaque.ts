// Finds the sealed state in an answer. The text service remembers it by its hash, so that the next turn brings it to its maker
// alone.

import type { JsonValue } from "#kit/base/json.ts";

/** Items nest content parts, and parts nest little more. Deeper values are the model's own data. */
const maxDepth = 4;

/** State that only its maker can read: every `encrypted_content` in an item or a list of items, and its counterparts in chat. */
export function opaqueIn(value: JsonValue | undefined): string[] {
  const found: string[] = [];
  collect(value, 0, found);
  return found;
}

function collect(value: JsonValue | undefined, depth: number, found: string[]): void {
  if (depth > maxDepth || typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    for (const entry of value) collect(entry, depth + 1, found);
    return;
  }
  const isRouters = value.type === "reasoning.encrypted";
  for (const name of Object.keys(value)) {
    const entry = value[name];
    const isState = name === "encrypted_content" || (isRouters && name === "data");
    if (isState && typeof entry === "string" && entry) found.push(entry);
    else collect(entry, depth + 1, found);
  }
}
