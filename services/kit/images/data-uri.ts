import { type ReadBase64, readBase64, type SlicedText } from "#kit/base/base64.ts";

/** A data URI taken apart. */
export interface DataUri extends ReadBase64 {
  /** The writer's word for it, lower case, without parameters; "" where there is none. */
  readonly mimeType: string;
}

/** Characters before the comma: a type, and parameters such as a file's name. What is longer is no data URI that a program writes. */
const maxHeadCharacters = 1_024;
/** So many times the digits of its bytes a data URI may be long: line breaks and escapes (`%2B`) take room, and no more than this. */
const lengthFactor = 2;

const mediaType = /^[a-z0-9][\w.+-]{0,63}\/[a-z0-9][\w.+-]{0,63}$/i;

/** Is it meant as a data URI? White space before it counts for nothing, as in a browser. */
export function isDataUri(text: SlicedText): boolean {
  return /^\s*data:/i.test(text.slice(0, maxHeadCharacters));
}

/** Is a data URI so long that it need not be read to be refused as holding more than these bytes? */
export function isTooLong(uri: SlicedText, maxBytes: number): boolean {
  return uri.length > (maxBytes / 3) * 4 * lengthFactor + maxHeadCharacters;
}

/**
 * Reads `data:TYPE;base64,…` as browsers do: parameters before `;base64`, white space anywhere, percent-encoding, and base64 as {@link readBase64}
 * takes it. Undefined for anything else, for nothing, and for what is no base64. A long one is read in several turns of the event loop.
 * `anyType`: also one whose type is left out, or is none.
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

/** What stands behind a place. */
function textBehind(text: SlicedText, start: number): SlicedText {
  if (typeof text === "string") return text.slice(start);
  const length = text.length - start;
  return { length, slice: (from, to = length) => text.slice(start + from, start + to) };
}

/** The same of an image, which says so. */
export async function readImageUri(uri: string): Promise<DataUri | undefined> {
  const read = await readDataUri(uri);
  return read?.mimeType.startsWith("image/") ? read : undefined;
}
