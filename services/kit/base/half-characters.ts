import type { JsonValue } from "./json.ts";

// A text that was cut within a character ends in half a surrogate pair. JSON can escape one. UTF-8 has no bytes for it, so
// neither have forms, messages and stores, and most servers refuse it. All functions here recurse as deep as a body may be
// (`maxJsonDepth`).

/** Does any text or name of a body hold half a character? Only an escape makes one, so most bodies are not walked. */
export function hasHalfCharacter(json: Uint8Array, value: JsonValue): boolean {
  const bytes = Buffer.from(json.buffer, json.byteOffset, json.length);
  return (bytes.includes("\\ud") || bytes.includes("\\uD")) && holdsHalf(value);
}

function holdsHalf(value: JsonValue): boolean {
  if (typeof value === "string") return !value.isWellFormed();
  if (Array.isArray(value)) return value.some(holdsHalf);
  if (typeof value !== "object" || value === null) return false;
  for (const name in value) {
    if (!name.isWellFormed() || holdsHalf(value[name] as JsonValue)) return true;
  }
  return false;
}

/** A copy with U+FFFD in place of each half character, as every encoder of UTF-8 writes it. */
export function withoutHalves<T extends JsonValue>(value: T): T {
  const well = (text: string) => text.toWellFormed();
  return mapTexts(value, well, well) as T;
}

/**
 * A copy for a fingerprint, which is made of UTF-8. Each text with a half character is replaced by its JSON form, in which the
 * half is escaped.
 */
export function withEscapedHalves<T extends JsonValue>(value: T): T {
  const escaped = (text: string) => (text.isWellFormed() ? text : JSON.stringify(text));
  return mapTexts(
    value,
    (text) => (text.isWellFormed() ? text : { escaped: JSON.stringify(text) }),
    escaped,
  ) as T;
}

function mapTexts(
  value: JsonValue,
  text: (text: string) => JsonValue,
  name: (name: string) => string,
): JsonValue {
  if (typeof value === "string") return text(value);
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, text, name));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [name(key), mapTexts(inner, text, name)]),
  );
}
