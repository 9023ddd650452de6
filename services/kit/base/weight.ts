// Gives an upper bound of the bytes that a model's template makes of a request's body. The bound of its input tokens comes from
// it, before any tokenizer has run.

import { ErrorReason, refuse } from "./errors.ts";
import type { JsonValue } from "./json.ts";
import { growthOf, mayGrow } from "./text-growth.ts";

const backslash = 0x5c;
/** Punctuation that any rendering puts around a value or name: quotes, a separator, white space. */
const nodeBytes = 4;
/** Longest text of a JSON number or literal. */
const scalarBytes = 24;
/**
 * Levels of nesting whose indentation is one token, with four blanks for each level, as templates write it. Vocabularies have
 * runs of sixteen blanks.
 */
const levelsPerToken = 4;

/**
 * Names of values that templates write as JSON again: tools, and calls of them. Some templates indent it (Llama's). Some write it
 * as Go does (Ollama's), where an angle bracket takes six bytes.
 */
const writtenAgain: ReadonlySet<string> = new Set([
  "arguments",
  "function_call",
  "functions",
  "tool_calls",
  "tools",
]);

/**
 * Bytes that a parsed body can have when it is rendered for a model. That is the UTF-8 of every string and name in its JSON form, and a
 * fixed allowance for each value. A body that is nested deeper than `levels`, or has a number beyond a double, is refused with
 * INVALID_JSON. `source` is the body as the caller sent it. Without it every string is written as JSON once more.
 */
export function weightOf(value: JsonValue, levels: number, source?: Uint8Array): number {
  const escapes = source && shortEscapesIn(source);
  return escapes === undefined
    ? weigh(value, 0, { levels, bytesOf: jsonBytes })
    : weigh(value, 0, { levels, bytesOf: quotedBytes }) + escapes;
}

interface Weighing {
  levels: number;
  bytesOf(text: string): number;
  /** Does a template write it as JSON again? */
  isAgain?: boolean;
}

function weigh(value: JsonValue, depth: number, weighing: Weighing): number {
  const { levels, bytesOf, isAgain = false } = weighing;
  const indentation = isAgain ? Math.floor(depth / levelsPerToken) : 0;
  const around = nodeBytes + indentation;
  if (typeof value === "string") return bytesOf(value) + around;
  if (typeof value === "number") {
    if (!Number.isFinite(value)) refuse(ErrorReason.INVALID_JSON);
    return scalarBytes + around;
  }
  if (typeof value !== "object" || value === null) return scalarBytes + around;
  if (depth >= levels) refuse(ErrorReason.INVALID_JSON);
  // Its last bracket is on a line of its own.
  let sum = around + indentation;
  if (Array.isArray(value)) {
    for (const item of value) sum += weigh(item, depth + 1, weighing);
    return sum;
  }
  for (const name in value) {
    const inner = isAgain || !writtenAgain.has(name) ? weighing : again(weighing);
    sum += bytesOf(name) + around + weigh(value[name] as JsonValue, depth + 1, inner);
  }
  return sum;
}

function again({ levels, bytesOf }: Weighing): Weighing {
  return { levels, isAgain: true, bytesOf: (text) => bytesOf(text) + goEscapes(text) };
}

/**
 * Bytes by which a text is longer in Go's JSON. Go escapes the characters that are special in HTML and JavaScript, such as
 * `\u003c`.
 */
function goEscapes(text: string): number {
  const first = text.search(/[<>&\u2028\u2029]/);
  if (first === -1) return 0;
  let bytes = 0;
  for (let at = first; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x3c || code === 0x3e || code === 0x26) bytes += 5;
    else if (code === 0x2028 || code === 0x2029) bytes += 3;
  }
  return bytes;
}

// Templates write tools and arguments as JSON again, where a control character takes six bytes.
function jsonBytes(text: string): number {
  const bytes = Buffer.byteLength(JSON.stringify(text));
  return mayGrow(text) ? bytes + growthOf(text, "NFC") : bytes;
}

/** The same for a text with short escapes alone. It is too low by one byte for each escape. */
function quotedBytes(text: string): number {
  const bytes = Buffer.byteLength(text);
  return (bytes > text.length && mayGrow(text) ? bytes + growthOf(text, "NFC") : bytes) + 2;
}

/**
 * The number of escapes in a JSON text where each escape is the shortest that JSON has: `\n`, `\"`. Undefined where the text may
 * have others that could be shorter (`\/`) or are longer (`\u0041`). Nearly no body has those. Writing a body's strings again to
 * measure them takes as long as all other work on it. Where an object has a name twice, the parser keeps the last value. The
 * escapes of both count, since the weight is an upper bound.
 */
function shortEscapesIn(source: Uint8Array): number | undefined {
  const json = Buffer.from(source.buffer, source.byteOffset, source.length);
  let at = json.indexOf(backslash);
  if (at === -1) return 0;
  if (json.includes("\\u") || json.includes("\\/")) return undefined;
  let escapes = 0;
  for (; at < json.length; at++) {
    if (json[at] !== backslash) continue;
    escapes++;
    at++;
  }
  return escapes;
}
