import { ErrorReason, refuse } from "./errors.ts";
import type { JsonValue } from "./json.ts";

/** Punctuation that any rendering puts around a value or name: quotes, a separator, white space. */
const nodeBytes = 4;
/** Longest text of a JSON number or literal. */
const scalarBytes = 24;

/**
 * Bytes that a parsed body can become when it is rendered for a model: UTF-8 of every string and name in its
 * JSON form, and a fixed allowance for each value. Refuses with INVALID_JSON what is nested deeper than `levels` or has a
 * number beyond a double.
 */
export function weightOf(value: JsonValue, levels: number): number {
  if (typeof value === "string") return jsonBytes(value) + nodeBytes;
  if (typeof value === "number") {
    if (!Number.isFinite(value)) refuse(ErrorReason.INVALID_JSON);
    return scalarBytes + nodeBytes;
  }
  if (typeof value !== "object" || value === null) return scalarBytes + nodeBytes;
  if (levels <= 0) refuse(ErrorReason.INVALID_JSON);
  let sum = nodeBytes;
  if (Array.isArray(value)) {
    for (const item of value) sum += weightOf(item, levels - 1);
    return sum;
  }
  for (const name in value) {
    sum += jsonBytes(name) + nodeBytes + weightOf(value[name] as JsonValue, levels - 1);
  }
  return sum;
}

// Templates write tools and arguments as JSON again, where a control character takes six bytes.
function jsonBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text));
}
