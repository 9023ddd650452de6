import { turn } from "../in-turns.ts";

/** A data URI taken apart; `mimeType` is the writer's word for it, lower case. */
export type DataUri = { readonly mimeType: string; readonly bytes: Uint8Array };

const head = /^data:(image\/[a-z0-9][a-z0-9.+-]{0,63});base64,/i;

/**
 * Reads `data:image/…;base64,…`, or gives undefined for anything else. Strict: no parameters, no
 * white space, no percent-encoding, the standard alphabet with its padding, canonical last
 * digits, and at least one byte. So a text has one reading, here and at every upstream. A long one
 * is read in several turns of the event loop.
 */
export async function parseDataUri(uri: string): Promise<DataUri | undefined> {
  const match = head.exec(uri);
  if (match?.[1] === undefined) return undefined;
  const payload = uri.slice(match[0].length);
  const bytes = await decodeBase64(payload);
  return bytes && { mimeType: match[1].toLowerCase(), bytes };
}

/** Digits that are read before others get their turn, some ms of work; four are three bytes. */
const digitsAtOnce = 4 * 1024 * 1024;

/** Reads strict base64, as {@link parseDataUri} does; undefined where it is none, or nothing. */
export async function decodeBase64(payload: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const bytes = Buffer.allocUnsafeSlow(Math.ceil((payload.length * 3) / 4));
  let size = 0;
  for (let at = 0; at < payload.length; at += digitsAtOnce) {
    if (at > 0) await turn();
    const digits = payload.slice(at, at + digitsAtOnce);
    const part = Buffer.from(digits, "base64");
    // Buffer skips what it does not know, takes the URL alphabet, and cuts wide characters short.
    // Writing the bytes again shows all of that, ten times faster than a pattern would.
    if (part.length === 0 || part.toString("base64") !== digits) return undefined;
    // Padding has its place at the end alone.
    const isLast = at + digitsAtOnce >= payload.length;
    if (!isLast && part.length !== (digitsAtOnce / 4) * 3) return undefined;
    bytes.set(part, size);
    size += part.length;
  }
  return size === 0 ? undefined : bytes.subarray(0, size);
}
