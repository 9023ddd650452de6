// Decodes the body that a fetch from outside brings, within a bound of bytes.

import { pipeline, type Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { OutsideError } from "./errors.ts";

const decoders = new Map([
  ["gzip", createGunzip],
  ["x-gzip", createGunzip],
  ["deflate", createInflate],
  ["br", createBrotliDecompress],
]);

/**
 * A body's bytes as they come. The bound applies twice, to the bytes on the wire and to the decoded ones. So neither a small archive of
 * a large body nor an endless run of empty blocks passes. The request asked for identity only, but a single gzip, deflate or br is
 * still decoded. Throws `too_large`, or `bad_status` for another or a broken encoding.
 */
export async function* decodedBody(
  body: Readable,
  encoding: string,
  maxBytes: number,
): AsyncGenerator<Uint8Array> {
  const coding = encoding.trim().toLowerCase();
  if (coding === "" || coding === "identity") {
    yield* capped(maxBytes)(body);
    return;
  }
  const createDecoder = decoders.get(coding);
  if (createDecoder === undefined) throw new OutsideError("bad_status", "CONTENT_ENCODING");
  // `pipeline` hands an error of either side to the reader of the last stream.
  const decoded = pipeline(body, capped(maxBytes), createDecoder(), () => {});
  try {
    yield* capped(maxBytes)(decoded);
  } catch (error) {
    throw isZlibError(error) ? new OutsideError("bad_status", error.code) : error;
  }
}

function capped(maxBytes: number) {
  return async function* (chunks: AsyncIterable<Uint8Array>) {
    let seen = 0;
    for await (const chunk of chunks) {
      seen += chunk.length;
      if (seen > maxBytes) throw new OutsideError("too_large");
      yield chunk;
    }
  };
}

function isZlibError(error: unknown): error is Error & { code: string } {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && code.startsWith("Z_");
}
