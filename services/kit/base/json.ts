import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { ErrorReason, refuse } from "./errors.ts";
import { hasHalfCharacter, withoutHalves } from "./half-characters.ts";

/** A parsed JSON value. */
export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject;
/** A parsed JSON object. */
export type JsonObject = { [name: string]: JsonValue };

/**
 * Bytes of a body that sets something: of a key, of an account's alerts. The longest key, of 200 models, has some 40 KB. It is parsed on
 * the event loop, before it is known whether the caller may set anything.
 */
export const maxSettingsBytes = 64 * 1024;
/** Names of such a body: a key has some 20. New ones cost the parser some microseconds each. */
export const maxSettingsNames = 500;
/**
 * Values and names of a body that is one long text, as a draft of the catalog: it has one of each. 2 MiB of new names keep the event loop for a fifth of a
 * second, of escaped quotes within one text for 15 ms.
 */
export const maxTextBodyMarks = 100;

const strictUtf8 = new TextDecoder("utf-8", { fatal: true });

/** Is it an object (not an array, not null)? */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Parses a request body. Refuses with INVALID_JSON what is no UTF-8, no JSON, or no object, and before
 * that what would be huge once parsed: see {@link checkJsonShape}.
 */
export function parseJsonBody(body: Uint8Array): JsonObject {
  checkJsonShape(body);
  return parseShaped(body);
}

/** The same of a body whose shape is known to be sound: {@link shapeFault} found nothing. Its texts may end in half a character. */
export function parseShaped(body: Uint8Array): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(strictUtf8.decode(body));
  } catch {
    refuse(ErrorReason.INVALID_JSON);
  }
  return isJsonObject(value) ? value : refuse(ErrorReason.INVALID_JSON);
}

/** The same of a body that sets something, which is small: what is larger, or has too many names, is refused with PAYLOAD_TOO_LARGE. */
export function parseSettings(body: Uint8Array): JsonObject {
  if (body.length > maxSettingsBytes) refuse(ErrorReason.PAYLOAD_TOO_LARGE);
  if (shapeFault(body, { marks: maxJsonMarks, names: maxSettingsNames }) === "many") {
    refuse(ErrorReason.PAYLOAD_TOO_LARGE, { message: "The body holds too many names." });
  }
  return parseWellFormed(body);
}

/** The same of a body whose length is that of one text in it: what has more values beside is refused with PAYLOAD_TOO_LARGE. */
export function parseTextBody(body: Uint8Array): JsonObject {
  if (shapeFault(body, { marks: maxTextBodyMarks }) === "many") {
    refuse(ErrorReason.PAYLOAD_TOO_LARGE, { message: "The body holds too many values." });
  }
  return parseWellFormed(body);
}

/** With U+FFFD in the place of half a character. */
function parseWellFormed(body: Uint8Array): JsonObject {
  const value = parseJsonBody(body);
  return hasHalfCharacter(body, value) ? withoutHalves(value) : value;
}

/**
 * SHA-256 (hexadecimal) of the canonical form (RFC 8785): the same for bodies that mean the same. Refuses with INVALID_JSON
 * what has no such form: a number beyond a double's range, and half a character, which `withEscapedHalves` puts in one.
 */
export function fingerprintOf(value: JsonValue): string {
  const hash = createHash("sha256");
  try {
    hash.update(canonicalize(value) ?? "");
  } catch (cause) {
    refuse(ErrorReason.INVALID_JSON, { cause });
  }
  return hash.digest("hex");
}

/** Levels of nesting: far above what any request takes, far below what costs memory, or overflows the stack of what walks values. */
export const maxJsonDepth = 1_000;
/** Values and names, by their brackets, commas and colons: 60,000 messages, more than fit into any context, and 30 MB parsed. */
export const maxJsonMarks = 300_000;

const quote = 0x22;
const backslash = 0x5c;
const bracket = 0x5b;
const brace = 0x7b;
const colon = 0x3a;

/**
 * Refuses JSON that is small on the wire and huge once parsed: brackets take 30 to 100 times their bytes as values, so
 * that one body within its limit could fill a process. Looks at brackets, commas and colons outside strings alone; whether
 * it is JSON is for the parser to say. Refuses with INVALID_JSON (nested too deep) or PAYLOAD_TOO_LARGE.
 */
export function checkJsonShape(body: Uint8Array): void {
  const fault = shapeFault(body, { marks: maxJsonMarks });
  if (fault === "deep") refuse(ErrorReason.INVALID_JSON);
  if (fault === "many") {
    refuse(ErrorReason.PAYLOAD_TOO_LARGE, { message: "The body holds too many values." });
  }
}

/** How much JSON may hold. */
export interface JsonBounds {
  /** Values and names, by brackets, commas and colons. */
  marks: number;
  /** Names, by colons; default: as many as marks. */
  names?: number;
}

/** Fewest bytes of a name and its value: `"":0,`. */
const nameBytes = 5;

/**
 * Is JSON nested deeper than {@link maxJsonDepth}, or does it hold more than it may? Undefined: neither. Strings are passed over natively, so
 * that a prompt of 64 KiB takes a hundredth of a ms. What walks values and what writes them as JSON recurses, and overflows a stack at some
 * thousand levels.
 */
export function shapeFault(
  body: Uint8Array,
  { marks: mostMarks, names: mostNames = mostMarks }: JsonBounds,
): "deep" | "many" | undefined {
  // Each level has two brackets.
  const harmless = Math.min(2 * maxJsonDepth, mostMarks, nameBytes * mostNames);
  if (body.length <= harmless) return undefined;
  // A Buffer's searches are native, those of other arrays take 20 times as long.
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
 * Has it no more bytes than marks may be, and no more brackets (those in strings as well) than levels may be? Native
 * searches answer that in a tenth of the time; most long bodies need no more.
 */
function isHarmless(json: Buffer, mostMarks: number): boolean {
  if (json.length > mostMarks) return false;
  const half = maxJsonDepth / 2;
  return !hasMoreOf(json, bracket, half) && !hasMoreOf(json, brace, half);
}

/** Is a byte there more often than that, in strings as well? */
function hasMoreOf(json: Buffer, byte: number, most: number): boolean {
  let left = most;
  for (let at = json.indexOf(byte); at !== -1; at = json.indexOf(byte, at + 1)) {
    if (--left < 0) return true;
  }
  return false;
}

/** Bytes of a string, and of what follows an escaped quote in it, after which the next quote is searched for natively: a call costs as much as reading these. */
const searchedAfterBytes = 32;

/** Where the string that begins at `from` ends. */
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
    // An even number of backslashes right before it are escaped themselves.
    let run = next;
    while (run > at && json[run - 1] === backslash) run--;
    if ((next - run) % 2 === 0) return next;
    at = next + 1;
  }
  return json.length;
}
