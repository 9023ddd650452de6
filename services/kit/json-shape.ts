import { ErrorReason, refuse } from "./errors.ts";

/** JSON from this size on is looked at before it is parsed: a shorter text is 10 MB of values at most. */
const shapeCheckedFromBytes = 64 * 1024;
/** Levels of nesting: far above what any request takes, far below what costs memory. */
const maxJsonDepth = 1_000;
/** Values and names, by their brackets, commas and colons: 60,000 messages, more than fit into any context, and 30 MB parsed. */
const maxJsonMarks = 300_000;

const quote = 0x22;
const backslash = 0x5c;
const bracket = 0x5b;
const brace = 0x7b;

/**
 * Refuses JSON that is small on the wire and huge once parsed: brackets take 30 to 100 times their bytes as values, so
 * that one body within its limit could fill a process. Looks at brackets, commas and colons outside strings alone; whether
 * it is JSON is for the parser to say. Refuses with INVALID_JSON (nested too deep) or PAYLOAD_TOO_LARGE.
 */
export function checkJsonShape(body: Uint8Array): void {
  if (body.length < shapeCheckedFromBytes) return;
  // A Buffer's searches are native, those of other arrays take 20 times as long.
  const json = Buffer.from(body.buffer, body.byteOffset, body.length);
  if (isHarmless(json)) return;
  let depth = 0;
  let marks = 0;
  for (let at = 0; at < json.length; at++) {
    switch (json[at]) {
      case quote:
        at = endOfString(json, at);
        break;
      case bracket:
      case brace:
        if (++depth > maxJsonDepth) refuse(ErrorReason.INVALID_JSON);
        marks++;
        break;
      case 0x5d:
      case 0x7d:
        depth--;
        break;
      case 0x2c:
      case 0x3a:
        marks++;
        break;
    }
    if (marks > maxJsonMarks) {
      refuse(ErrorReason.PAYLOAD_TOO_LARGE, { message: "The body holds too many values." });
    }
  }
}

/**
 * Has it no more bytes than marks may be, and no more brackets (those in strings as well) than levels may be? Native
 * searches answer that in a tenth of the time; most long prompts need no more.
 */
function isHarmless(json: Buffer): boolean {
  if (json.length > maxJsonMarks) return false;
  let left = maxJsonDepth;
  for (const open of [bracket, brace]) {
    for (let at = json.indexOf(open); at !== -1; at = json.indexOf(open, at + 1)) {
      if (--left < 0) return false;
    }
  }
  return true;
}

/** Bytes of a string after which its end is searched for natively: a call costs as much as reading these. */
const searchedAfterBytes = 256;

/** Where the string that begins at `from` ends. */
function endOfString(json: Buffer, from: number): number {
  let plain = 0;
  let at = from + 1;
  while (at < json.length) {
    const byte = json[at];
    if (byte === quote) return at;
    plain = byte === backslash ? 0 : plain + 1;
    at += byte === backslash ? 2 : 1;
    if (plain < searchedAfterBytes) continue;
    const next = json.indexOf(quote, at);
    if (next === -1) return json.length;
    // To the backslashes right before it: they say whether it is the end.
    let run = next;
    while (run > at && json[run - 1] === backslash) run--;
    at = run;
    plain = 0;
  }
  return json.length;
}
