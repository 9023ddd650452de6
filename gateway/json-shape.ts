import { ErrorReason, refuse } from "#kit/errors.ts";
import { maxBodyDepth, maxBodyMarks, shapeCheckedFromBytes } from "./limits.ts";

const quote = 0x22;
const backslash = 0x5c;

/**
 * Refuses a JSON body that is small on the wire and huge once parsed: brackets take 30 to 100 times their bytes as
 * values, so that one body within its limit could fill a process. Looks at brackets, commas and colons outside strings
 * alone; whether it is JSON is the service's to say. Refuses with INVALID_JSON (nested too deep) or PAYLOAD_TOO_LARGE.
 */
export function checkJsonShape(body: Buffer): void {
  if (body.length < shapeCheckedFromBytes) return;
  let depth = 0;
  let marks = 0;
  for (let at = 0; at < body.length; at++) {
    switch (body[at]) {
      case quote:
        at = endOfString(body, at);
        break;
      case 0x5b:
      case 0x7b:
        if (++depth > maxBodyDepth) refuse(ErrorReason.INVALID_JSON);
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
    if (marks > maxBodyMarks) {
      refuse(ErrorReason.PAYLOAD_TOO_LARGE, { message: "The body holds too many values." });
    }
  }
}

/** Bytes of a string after which its end is searched for natively: a call costs as much as reading these. */
const searchedAfterBytes = 256;

/** Where the string that begins at `from` ends. */
function endOfString(body: Buffer, from: number): number {
  let plain = 0;
  let at = from + 1;
  while (at < body.length) {
    const byte = body[at];
    if (byte === quote) return at;
    plain = byte === backslash ? 0 : plain + 1;
    at += byte === backslash ? 2 : 1;
    if (plain < searchedAfterBytes) continue;
    const next = body.indexOf(quote, at);
    if (next === -1) return body.length;
    // To the backslashes right before it: they say whether it is the end.
    let run = next;
    while (run > at && body[run - 1] === backslash) run--;
    at = run;
    plain = 0;
  }
  return body.length;
}
