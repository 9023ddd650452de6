// Reads base64 that callers and upstreams wrote, of up to many megabytes, without keeping the event loop.

import { joinInTurns, turn } from "./in-turns.ts";

/** A text that is read slice by slice: a string, or bytes in memory. */
export interface SlicedText {
  readonly length: number;
  slice(from: number, to?: number): string;
}

/** The result of reading base64. */
export interface ReadBase64 {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /**
   * Is the text the same as the bytes written in base64 again? A text that is not has more than one reading, so it is sent to no
   * upstream unchanged.
   */
  readonly isCanonical: boolean;
  /** Line breaks and tabs of the text, which JSON writes as two characters each. */
  readonly breaks: number;
}

/** The canonical form of bytes. */
export function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64");
}

/** Digits that are read before other work gets its turn, which takes some ms. Four digits are three bytes. */
const digitsAtOnce = 1024 * 1024;
/**
 * Characters that are cleaned before other work gets its turn. Patterns take 20 times as long for a character as reading does.
 */
const cleanedAtOnce = 128 * 1024;

/**
 * Reads base64 as browsers do (forgiving-base64 decode of WHATWG Infra). White space is ignored, padding is optional, and bits of
 * the last digit beyond the last byte are dropped. Other than browsers, it takes either alphabet. `isEscaped`: the text is part
 * of a URI and may be percent-encoded. Undefined where the text is no base64, or empty. A long text is read in several turns of
 * the event loop.
 */
export async function readBase64(
  text: SlicedText,
  { isEscaped = false }: { isEscaped?: boolean } = {},
): Promise<ReadBase64 | undefined> {
  const canonical = await decode(text);
  if (canonical) return { bytes: canonical, isCanonical: true, breaks: 0 };
  const cleaned = await clean(text, isEscaped);
  const bytes = cleaned && (await decode(cleaned.digits));
  return bytes && { bytes, isCanonical: false, breaks: cleaned.breaks };
}

/** Reads the canonical form alone. Undefined where the text is no canonical base64, or empty. */
async function decode(digits: SlicedText): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const bytes = Buffer.allocUnsafeSlow(Math.ceil((digits.length * 3) / 4));
  let size = 0;
  for (let at = 0; at < digits.length; at += digitsAtOnce) {
    if (at > 0) await turn();
    const some = digits.slice(at, at + digitsAtOnce);
    const part = Buffer.from(some, "base64");
    // Buffer skips characters that it does not know, takes the URL alphabet, and cuts wide characters short. Writing the bytes
    // again shows all of that, ten times faster than a pattern would.
    if (part.length === 0 || part.toString("base64") !== some) return undefined;
    // Padding is allowed at the end alone.
    const isLast = at + digitsAtOnce >= digits.length;
    if (!isLast && part.length !== (digitsAtOnce / 4) * 3) return undefined;
    bytes.set(part, size);
    size += part.length;
  }
  return size === 0 ? undefined : bytes.subarray(0, size);
}

/** The text in canonical form, if it is base64 at all. Undefined where it has characters that are no bytes. */
async function clean(
  text: SlicedText,
  isEscaped: boolean,
): Promise<{ digits: SlicedText; breaks: number } | undefined> {
  const parts: Buffer[] = [];
  let breaks = 0;
  /** The beginning of an escape whose end comes with the next slice. */
  let begun = "";
  for (let at = 0; at < text.length; at += cleanedAtOnce) {
    if (at > 0) await turn();
    const raw = text.slice(at, at + cleanedAtOnce);
    const unbroken = raw.replace(/[\t\n\f\r]+/g, "");
    breaks += raw.length - unbroken.length;
    const some = begun + unbroken;
    begun = isEscaped ? (/%[^%]?$/.exec(some)?.[0] ?? "") : "";
    const digits = digitsIn(some.slice(0, some.length - begun.length), isEscaped);
    const part = Buffer.from(digits, "latin1");
    if (part.toString("latin1") !== digits) return undefined;
    parts.push(part);
  }
  const spare = Buffer.alloc(longestEnd);
  const bytes = await joinInTurns([...parts, Buffer.from(begun, "latin1"), spare]);
  return { digits: textOf(bytes.subarray(0, paddedSize(bytes))), breaks };
}

/** Bytes as a text with one character for each byte. No string of the whole is made at once. */
export function textOf(bytes: Buffer): SlicedText {
  const { length } = bytes;
  return { length, slice: (from, to = length) => bytes.toString("latin1", from, to) };
}

function digitsIn(text: string, isEscaped: boolean): string {
  const plain =
    isEscaped && text.includes("%")
      ? text.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
      : text;
  return plain
    .replace(/[ \t\n\f\r]+/g, "")
    .replaceAll("-", "+")
    .replaceAll("_", "/");
}

/** Digits of the last bytes, with their padding. */
const longestEnd = 4;
const padding = 0x3d;

/**
 * Gives digits their padding, and clears the bits of the last digit that belong to no byte. Answers the number of digits then.
 * The caller leaves room for them behind the digits.
 */
function paddedSize(bytes: Buffer): number {
  const size = bytes.length - longestEnd;
  let bare = size;
  if (size % 4 === 0) while (size - bare < 2 && bytes[bare - 1] === padding) bare--;
  const from = bare - (bare % 4);
  const end = bytes.toString("latin1", from, bare);
  // An end that is no base64 stays unchanged, so that the reader finds it.
  if (end.length < 2 || !/^[a-z0-9+/]+$/i.test(end)) return bare;
  return from + bytes.write(Buffer.from(end, "base64").toString("base64"), from, "latin1");
}
