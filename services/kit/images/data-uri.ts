// Reads a data URI that a caller wrote in place of a file's URL. Its bytes are not checked here.

import { type ReadBase64, readBase64, type SlicedText } from "#kit/base/base64.ts";

/** The parts of a data URI. */
export interface DataUri extends ReadBase64 {
  /** The declared type in lower case, without parameters. "" where there is none. */
  readonly mimeType: string;
}

/** Characters before the comma: a type, and parameters such as a file's name. No program writes a data URI with more. */
const maxHeadCharacters = 1_024;
/**
 * A data URI may be longer than the digits of its bytes by this factor. Line breaks and escapes (`%2B`) take no more room than that.
 */
const lengthFactor = 2;

const mediaType = /^[a-z0-9][\w.+-]{0,63}\/[a-z0-9][\w.+-]{0,63}$/i;

/** Is it meant as a data URI? White space before it is ignored, as in a browser. */
export function isDataUri(text: SlicedText): boolean {
  return /^\s*data:/i.test(text.slice(0, maxHeadCharacters));
}

/** Is a data URI so long that it can be refused unread, as holding more than these bytes? */
export function isTooLong(uri: SlicedText, maxBytes: number): boolean {
  return uri.length > (maxBytes / 3) * 4 * lengthFactor + maxHeadCharacters;
}

/**
 * Reads `data:TYPE;base64,…` as browsers do. Parameters before `;base64`, white space anywhere and percent-encoding are allowed, and
 * base64 as {@link readBase64} takes it. Undefined for anything else, for an empty one, and for one that is no base64. A long one is
 * read in several turns of the event loop. `anyType`: takes a data URI whose type is missing or invalid, too.
 */
export async function readDataUri(
  uri: SlicedText,
  { anyType = false }: { anyType?: boolean } = {},
): Promise<DataUri | undefined> {
  if (!isDataUri(uri)) return undefined;
  const start = uri.slice(0, maxHeadCharacters);
  const comma = start.indexOf(",");
  const head = start.slice(start.indexOf(":") + 1, Math.max(0, comma));
  const [mimeType = "", ...parameters] = head.split(";").map((part) => part.trim());
  if (!anyType && !mediaType.test(mimeType)) return undefined;
  if (parameters.at(-1)?.toLowerCase() !== "base64") return undefined;
  const read = await readBase64(textBehind(uri, comma + 1), { isEscaped: true });
  return read && { ...read, mimeType: mimeType.toLowerCase() };
}

/** The text behind a place. */
function textBehind(text: SlicedText, start: number): SlicedText {
  if (typeof text === "string") return text.slice(start);
  const length = text.length - start;
  return { length, slice: (from, to = length) => text.slice(start + from, start + to) };
}

/** Reads the data URI of an image. Its declared type must say that it is one. */
export async function readImageUri(uri: string): Promise<DataUri | undefined> {
  const read = await readDataUri(uri);
  return read?.mimeType.startsWith("image/") ? read : undefined;
}
