// Reads a file that an answer holds in base64. `download.ts` gets those that it only names.

import { readBase64 } from "#kit/base/base64.ts";
import { isDataUri, isTooLong, readDataUri } from "#kit/images/index.ts";
import { tooLarge } from "./download.ts";
import { failed } from "./faults.ts";
import { type LongText, readable } from "./long-texts.ts";

/**
 * Reads a file in an answer, as a data URI or in base64 alone. The declared type of a data URI is ignored, because the bytes show their
 * type. Throws a `failed` GenerationError where it is no base64, or more than `maxBytes`.
 */
export async function readInline(text: string | LongText, maxBytes: number): Promise<Uint8Array> {
  const whole = typeof text === "string" ? text : await readable(text);
  if (isTooLong(whole, maxBytes)) throw tooLarge();
  const read = await (isDataUri(whole) ? readDataUri(whole, { anyType: true }) : readBase64(whole));
  if (!read) throw failed("the upstream's answer holds no file");
  if (read.bytes.length > maxBytes) throw tooLarge();
  return read.bytes;
}
