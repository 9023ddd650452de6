import { isJsonObject, type JsonValue } from "#kit/json.ts";

/** Items nest content parts and those nest little more; deeper is the model's own data. */
const maxDepth = 4;

/** Every `encrypted_content` in an item or a list of items: state that only its maker can read. */
export function opaqueIn(value: JsonValue | undefined, depth = 0): string[] {
  if (depth > maxDepth || typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((entry) => opaqueIn(entry, depth + 1));
  const found: string[] = [];
  for (const [name, entry] of Object.entries(value)) {
    if (name === "encrypted_content" && typeof entry === "string" && entry) found.push(entry);
    else if (Array.isArray(entry) || isJsonObject(entry)) found.push(...opaqueIn(entry, depth + 1));
  }
  return found;
}
