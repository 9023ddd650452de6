// Finds and replaces half characters in the texts of a JSON body.
//
// A text that was cut within a character ends in half a surrogate pair. JSON can escape one. UTF-8 has no bytes for it, so
// neither have forms, messages and stores, and most servers refuse it. The functions below recurse as deep as a body may be
// (`maxJsonDepth`).

import type { JsonValue } from "./json.ts";

/** Does any text or name in a value hold half a character? A body is walked only where {@link mayHoldHalf} says so. */
export function holdsHalf(value: JsonValue): boolean {
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
