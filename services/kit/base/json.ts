// JSON values, and how a value is made of the bytes of a body that a caller sent. A body that would be huge once parsed is refused
// before that.

import { ErrorReason, refuse } from "./errors.ts";

/** A parsed JSON value. */
export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject;
/** A parsed JSON object. */
export type JsonObject = { [name: string]: JsonValue };

const strictUtf8 = new TextDecoder("utf-8", { fatal: true });

/** Is it an object (not an array, not null)? */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Parses a request body. A body that is not a JSON object in UTF-8 is refused with INVALID_JSON. A body that would be huge once parsed
 * is refused before that: see {@link checkJsonShape}.
 */
export function parseJsonBody(body: Uint8Array): JsonObject {
  checkJsonShape(body);
  return parseShaped(body);
}

/** Parses a body in which {@link shapeFault} found nothing. Its texts may end in half a character. */
export function parseShaped(body: Uint8Array): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(strictUtf8.decode(body));
  } catch {
    refuse(ErrorReason.INVALID_JSON);
  }
  return isJsonObject(value) ? value : refuse(ErrorReason.INVALID_JSON);
}

/**
 * Levels of nesting. That is far above the need of any request. It is far below the depth that costs memory, or that overflows
 * the stack of code that walks values.
 */
export const maxJsonDepth = 1_000;
/**
 * Values and names, counted by their brackets, commas and colons. That is 60,000 messages, more than fit into any context, and 30
 * MB parsed.
 */
export const maxJsonMarks = 300_000;

const quote = 0x22;
const backslash = 0x5c;
const bracket = 0x5b;
const brace = 0x7b;
const colon = 0x3a;

/**
 * Refuses JSON that is small on the wire and huge once parsed. Brackets take 30 to 100 times their bytes as values, so one body
 * within its limit could fill a process. Only brackets, commas and colons outside strings are looked at. The parser judges
 * whether the body is JSON. Refuses with INVALID_JSON (nested too deep) or PAYLOAD_TOO_LARGE.
 */
export function checkJsonShape(body: Uint8Array): void {
  const fault = shapeFault(body, { marks: maxJsonMarks });
  if (fault === "deep") refuse(ErrorReason.INVALID_JSON);
  if (fault === "many") {
    refuse(ErrorReason.PAYLOAD_TOO_LARGE, { message: "The body holds too many values." });
  }
}

/** The most that JSON may hold. */
export interface JsonBounds {
  /** Values and names, by brackets, commas and colons. */
  marks: number;
  /** Names, by colons. Default: as many as marks. */
  names?: number;
}

/** Fewest bytes of a name and its value: `"":0,`. */
const nameBytes = 5;

/**
 * Is JSON nested deeper than {@link maxJsonDepth}, or does it hold more than it may? Undefined: neither. Strings are passed over
 * natively, so that a prompt of 64 KiB takes a hundredth of a ms. Code that walks values or writes them as JSON recurses, and
 * overflows a stack at some thousand levels.
 */
export function shapeFault(
  body: Uint8Array,
  { marks: mostMarks, names: mostNames = mostMarks }: JsonBounds,
): "deep" | "many" | undefined {
  // Each level has two brackets.
  const harmless = Math.min(2 * maxJsonDepth, mostMarks, nameBytes * mostNames);
  if (body.length <= harmless) return undefined;
  // A Buffer's searches are native. Those of other arrays take 20 times as long.
  const json = Buffer.from(body.buffer, body.byteOffset, body.length);
  if (mostNames >= mostMarks && isHarmless(json, mostMarks)) return undefined;
  let depth = 0;
  let marks = 0;
  let names = 0;
  for (let at = 0; at < json.length; at++) {
    switch (json[at]) {
      case quote:
        at = endOfString(json, at);
        break;
      case bracket:
      case brace:
        if (++depth > maxJsonDepth) return "deep";
        marks++;
        break;
      case 0x5d:
      case 0x7d:
        depth--;
        break;
      case colon:
        names++;
        marks++;
        break;
      case 0x2c:
        marks++;
        break;
    }
    if (marks > mostMarks || names > mostNames) return "many";
  }
  return undefined;
}

/**
 * Has the body no more bytes than it may have marks, and no more brackets than it may have levels? Brackets in strings count as
 * well. Native searches answer that in a tenth of the time, and most long bodies need nothing else.
 */
function isHarmless(json: Buffer, mostMarks: number): boolean {
  if (json.length > mostMarks) return false;
  const half = maxJsonDepth / 2;
  return !hasMoreOf(json, bracket, half) && !hasMoreOf(json, brace, half);
}

/** Does a byte occur more often than `most`, strings included? */
function hasMoreOf(json: Buffer, byte: number, most: number): boolean {
  let left = most;
  for (let at = json.indexOf(byte); at !== -1; at = json.indexOf(byte, at + 1)) {
    if (--left < 0) return true;
  }
  return false;
}

/**
 * Bytes of a string, and of the text behind an escaped quote in it, that are read one by one. Then the next quote is searched for
 * natively: a call costs as much as reading these.
 */
const searchedAfterBytes = 32;

/** The position where the string that begins at `from` ends. */
function endOfString(json: Buffer, from: number): number {
  let at = from + 1;
  while (at < json.length) {
    const near = Math.min(at + searchedAfterBytes, json.length);
    while (at < near) {
      const byte = json[at];
      if (byte === quote) return at;
      at += byte === backslash ? 2 : 1;
    }
    const next = json.indexOf(quote, at);
    if (next === -1) return json.length;
    // An even number of backslashes right before the quote are escaped themselves.
    let run = next;
    while (run > at && json[run - 1] === backslash) run--;
    if ((next - run) % 2 === 0) return next;
    at = next + 1;
  }
  return json.length;
}

/** May a body hold half a character? Only an escape makes one, so the values of most bodies are not walked. */
export function mayHoldHalf(json: Uint8Array): boolean {
  const bytes = Buffer.from(json.buffer, json.byteOffset, json.length);
  return bytes.includes("\\ud") || bytes.includes("\\uD");
}
