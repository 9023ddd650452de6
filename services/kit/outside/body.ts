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
 * Reads a body to its end. The cap holds twice, for the bytes on the wire and for the decoded
 * ones, so that neither a small archive of a large body nor an endless run of empty blocks
 * passes. Only identity was asked for; a single gzip, deflate or br is decoded all the same.
 * Throws `too_large`, or `bad_status` for another or a broken encoding.
 */
export async function readBody(
  body: Readable,
  encoding: string,
  maxBytes: number,
): Promise<Uint8Array> {
  const coding = encoding.trim().toLowerCase();
  if (coding === "" || coding === "identity") return collect(body, maxBytes);
  const createDecoder = decoders.get(coding);
  if (createDecoder === undefined) throw new OutsideError("bad_status", "CONTENT_ENCODING");
  // `pipeline` hands an error of either side to the reader of the last stream.
  const decoded = pipeline(body, capped(maxBytes), createDecoder(), () => {});
  return collect(decoded, maxBytes).catch((error) => {
    throw isZlibError(error) ? new OutsideError("bad_status", error.code) : error;
  });
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

async function collect(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of capped(maxBytes)(body)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function isZlibError(error: unknown): error is Error & { code: string } {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && code.startsWith("Z_");
}
