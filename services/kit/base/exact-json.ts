// Parses JSON so that writing it again gives every number in its old spelling. For messages, answers and tools' arguments that
// are handed on.

import { isJsonObject, type JsonObject, shapeFault } from "./json.ts";

/** JSON's own functions for texts of numbers. The types of the language lack them. */
const { rawJSON, isRawJSON } = JSON as typeof JSON & {
  rawJSON(text: string): unknown;
  isRawJSON(value: unknown): boolean;
};

/** Texts with numbers that could be spelled otherwise when they are written again: 1.0, 1e3, or more digits than a number keeps. */
const unusualNumber = /\d[.eE]|\d{16}|-0/;

/** Could a number in this JSON text be spelled otherwise when it is written again? A text may look so that has none. */
export function hasUnusualNumbers(text: string): boolean {
  return unusualNumber.test(text);
}

/**
 * The object in a JSON text, whose numbers are written again as they were. Undefined where the text is no object, is nested deeper
 * than a request may be, or has more commas, colons and brackets than `marks` (default: any number of them).
 */
export function exactObject(
  text: string,
  { marks = Number.POSITIVE_INFINITY } = {},
): JsonObject | undefined {
  try {
    if (shapeFault(Buffer.from(text), { marks }) !== undefined) return undefined;
    const value: unknown = hasUnusualNumbers(text) ? exact(text) : JSON.parse(text);
    return isJsonObject(value) && !isRawJSON(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function exact(text: string): unknown {
  return JSON.parse(text, (_, value: unknown, context?: { source?: string }) => {
    const source = context?.source;
    const isRespelled = typeof value === "number" && source !== undefined && `${value}` !== source;
    return isRespelled ? rawJSON(source) : value;
  });
}
