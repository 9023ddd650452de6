// Takes files in base64 out of an answer, so that they are not parsed with its JSON. `inline-file.ts` reads them.

import { randomUUID } from "node:crypto";
import { type SlicedText, textOf } from "#kit/base/base64.ts";
import { inTurns, joinInTurns, turn } from "#kit/base/in-turns.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import { generateLimits } from "./limits.ts";

/**
 * Answers hold files as base64, with tens of megabytes in one text of JSON. Parsing that blocks the event loop for 100 ms and more. So
 * the long texts of an answer are taken out first, in several turns, and only the rest is parsed.
 */
export interface LongText {
  /** The text between its quotes in the JSON. */
  json: Buffer;
  /** Does it have escapes? */
  isEscaped: boolean;
}

/** An answer without its long texts. */
export interface ShortAnswer {
  json: Buffer;
  /** Each by the mark that replaces it. */
  longTexts: ReadonlyMap<string, LongText>;
}

const quote = 0x22;
const backslash = 0x5c;
/** Bytes that are gone through before other work gets its turn. They take some ms. */
const scannedAtOnce = 16 * 1024 * 1024;
/** Texts and escapes that are found before other work gets its turn. */
const foundAtOnce = 4_096;
/** Characters whose escapes are read before other work gets its turn. They take some ms. */
const unescapedAtOnce = 512 * 1024;

/** Takes the long texts out. Throws `too_large` where more than `maxBytes` would be left. */
export async function takeLongTexts(json: Buffer, maxBytes: number): Promise<ShortAnswer> {
  return inTurns(take(json, maxBytes));
}

function* take(json: Buffer, maxBytes: number): Generator<void, ShortAnswer> {
  const mark = `long-text:${randomUUID()}:`;
  const longTexts = new Map<string, LongText>();
  const kept: Buffer[] = [];
  let keptBytes = 0;
  const keep = (bytes: Buffer) => {
    kept.push(bytes);
    keptBytes += bytes.length;
    if (keptBytes > maxBytes) throw new UpstreamError("too_large");
  };
  let from = 0;
  let nextBackslash = yield* seek(json, backslash, 0);
  let found = 0;
  for (let start = 0; ; ) {
    start = (yield* seek(json, quote, start)) + 1;
    let end = yield* seek(json, quote, start);
    let isEscaped = false;
    for (;;) {
      if (++found % foundAtOnce === 0) yield;
      if (nextBackslash < start) nextBackslash = yield* seek(json, backslash, start);
      if (nextBackslash >= end) break;
      // The escaped character may be a quote, which is no end.
      isEscaped = true;
      const behind = nextBackslash + 2;
      if (end < behind) end = yield* seek(json, quote, behind);
      nextBackslash = yield* seek(json, backslash, behind);
    }
    // No text is left, or the last one has no end, which the parser reports.
    if (end >= json.length) break;
    if (end - start > generateLimits.parsedTextBytes) {
      const placeholder = mark + longTexts.size;
      longTexts.set(placeholder, { json: json.subarray(start, end), isEscaped });
      keep(json.subarray(from, start));
      keep(Buffer.from(placeholder));
      from = end;
    }
    start = end + 1;
  }
  keep(json.subarray(from));
  return { json: Buffer.concat(kept), longTexts };
}

/** The next place of a byte. The length where there is none. */
function* seek(bytes: Buffer, byte: number, from: number): Generator<void, number> {
  for (let at = from; at < bytes.length; at += scannedAtOnce) {
    const found = bytes.subarray(at, at + scannedAtOnce).indexOf(byte);
    if (found !== -1) return at + found;
    if (at + scannedAtOnce < bytes.length) yield;
  }
  return bytes.length;
}

/** A long text that is read slice by slice, with its escapes resolved. Characters beyond Latin-1 do not survive. */
export async function readable({ json, isEscaped }: LongText): Promise<SlicedText> {
  return textOf(isEscaped ? await unescaped(json) : json);
}

async function unescaped(json: Buffer): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for (let at = 0; at < json.length; ) {
    if (at > 0) await turn();
    const some = json.toString("latin1", at, at + unescapedAtOnce);
    // An escape that is cut comes with the next characters.
    const isLast = at + unescapedAtOnce >= json.length;
    const whole = isLast ? some : some.replace(/\\(?:u[0-9a-f]{0,3})?$/i, "");
    pieces.push(Buffer.from(textIn(whole), "latin1"));
    at += whole.length;
  }
  return joinInTurns(pieces);
}

/** Resolves the escapes of JSON. A text with invalid escapes is returned unchanged, and is no base64 then. */
function textIn(json: string): string {
  try {
    return JSON.parse(`"${json}"`);
  } catch {
    return json;
  }
}
