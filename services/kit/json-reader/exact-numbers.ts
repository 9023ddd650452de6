// Keeps numbers that a double rounds apart in a body's fingerprint, so that an idempotency key is not answered for another
// request.

import { createHash } from "node:crypto";
import { isJsonObject, type JsonObject, type JsonValue, shapeFault } from "#kit/base/json.ts";

/** A number that a double may round: it has more than 15 digits, or is so small that it may become 0. */
const maybeRounded = /[0-9][0-9.]{15}|[eE]-[0-9]{3}/;
const decimal = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;

/**
 * All such numbers of a text, and parts of its strings that look like them. A pattern without these bounds overflows the stack at
 * megabytes.
 */
const allMaybeRounded =
  /[0-9][0-9.]{15,999}(?:[eE][+-]?[0-9]{1,999})?|[0-9.]{1,16}[eE]-[0-9]{3,999}/g;
/**
 * The most values and names of a body whose numbers are checked one by one, which takes some 30 ms. Larger bodies can take a thread a
 * second.
 */
const maxExactMarks = 20_000;
/** A number with this many characters is not meant by any caller. */
const endlessCharacters = 1_000;

/** A body for its fingerprint. */
export interface ExactBody {
  /** The parsed body. Where its numbers are few, those that were rounded keep what rounding took. */
  value: JsonObject;
  /** Where the numbers are many: SHA-256 of all of them, as they are spelled. */
  spelled?: string;
}

/**
 * Makes a form of a body in which its exact numbers tell it apart. Two bodies that differ only in a seed beyond 2^53 are two requests.
 * `1.0` and `1` are the same. In a body with very many values, numbers differ when their spelling does.
 */
export function withExactNumbers(bytes: Uint8Array, parsed: JsonObject): ExactBody {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
  if (!maybeRounded.test(text)) return { value: parsed };
  if (shapeFault(bytes, { marks: maxExactMarks }) !== undefined || isEndless(text)) {
    const hash = createHash("sha256");
    for (const [number] of text.matchAll(allMaybeRounded)) hash.update(`${number},`);
    return { value: parsed, spelled: hash.digest("hex") };
  }
  const exact = JSON.parse(
    utf8Of(bytes),
    (_name: string, value: JsonValue, at?: { source?: string }) => {
      if (typeof value !== "number" || !Number.isFinite(value) || at?.source === undefined) {
        return value;
      }
      if (!maybeRounded.test(at.source)) return value;
      const meant = decimalOf(at.source);
      return meant === decimalOf(`${value}`) ? value : { number: meant };
    },
  );
  return { value: isJsonObject(exact) ? exact : parsed };
}

function utf8Of(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
}

/**
 * Has a text a run of that many digits and points? Each possible run is read from its end. A pattern would read a slightly shorter run
 * once for each of its characters.
 */
function isEndless(text: string): boolean {
  let from = 0;
  for (let end = endlessCharacters; end <= text.length; end = from + endlessCharacters) {
    let at = end;
    while (at > from && isOfNumber(text.charCodeAt(at - 1))) at--;
    if (at === from) return true;
    from = at;
  }
  return false;
}

const zero = 0x30;

/** Is it a digit or a point? */
function isOfNumber(code: number): boolean {
  return (code >= zero && code <= 0x39) || code === 0x2e;
}

/**
 * A decimal, in the same spelling for equal numbers. The time grows with the length alone. A pattern for the last zeros would read each
 * run of them again and again.
 */
function decimalOf(source: string): string {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = decimal.exec(source) ?? [];
  const digits = `${whole}${fraction}`.replace(/^0+/, "");
  let end = digits.length;
  while (end > 0 && digits.charCodeAt(end - 1) === zero) end--;
  const significant = digits.slice(0, end);
  if (significant === "") return "0";
  const shift = Number(exponent) - fraction.length + digits.length - significant.length;
  return `${sign}${significant}e${shift}`;
}
