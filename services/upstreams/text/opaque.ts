import type { JsonValue } from "#kit/json.ts";

/** Items nest content parts and those nest little more; deeper is the model's own data. */
const maxDepth = 4;

/** Every `encrypted_content` in an item or a list of items: state that only its maker can read. */
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
  for (const name of Object.keys(value)) {
    const entry = value[name];
    if (name === "encrypted_content" && typeof entry === "string" && entry) found.push(entry);
    else collect(entry, depth + 1, found);
  }
}
