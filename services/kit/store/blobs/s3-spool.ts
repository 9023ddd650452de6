// Takes in a blob before it is written to S3, which wants its length and digest first.

import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import { type NamelessFile, openNamelessFile } from "#kit/store/nameless-file.ts";
import { maxBlobBytes, maxBufferedBytes } from "./s3-limits.ts";

/** Bytes with their number and digest, which one PUT needs before its first byte. */
export interface Spooled extends AsyncDisposable {
  sizeBytes: number;
  /** Lower-case hexadecimal. */
  sha256: string;
  /** All bytes, from the beginning. It may be called several times. */
  body(): Buffer | Readable;
}

/**
 * Takes all bytes of `source`: small blobs into memory, larger ones into a nameless file on the disk of `folder`. Rejects with the
 * source's error or the signal's reason. Rejects with SERVICE_UNAVAILABLE where the folder's disk takes no writes. Rejects with a
 * RangeError where the blob is too large for S3.
 */
export async function spool(
  source: AsyncIterable<Uint8Array>,
  options: { folder: string; signal: AbortSignal | undefined },
): Promise<Spooled> {
  const { signal } = options;
  const hash = createHash("sha256");
  let held: Uint8Array[] = [];
  let heldBytes = 0;
  let sizeBytes = 0;
  let file: NamelessFile | undefined;
  try {
    for await (const chunk of source) {
      signal?.throwIfAborted();
      hash.update(chunk);
      sizeBytes += chunk.byteLength;
      if (sizeBytes > maxBlobBytes)
        throw new RangeError(`a blob has at most ${maxBlobBytes} bytes`);
      if (!file && heldBytes + chunk.byteLength <= maxBufferedBytes) {
        // The source may use the memory of its bytes again.
        held.push(Buffer.from(chunk));
        heldBytes += chunk.byteLength;
        continue;
      }
      if (!file) {
        file = await openNamelessFile(options.folder);
        for (const one of held) await file.append(one);
        held = [];
      }
      await file.append(chunk);
    }
    signal?.throwIfAborted();
  } catch (error) {
    await file?.[Symbol.asyncDispose]();
    throw error;
  }
  const buffered = Buffer.concat(held);
  return {
    sizeBytes,
    sha256: hash.digest("hex"),
    body: () => file?.stream() ?? buffered,
    [Symbol.asyncDispose]: async () => file?.[Symbol.asyncDispose](),
  };
}
