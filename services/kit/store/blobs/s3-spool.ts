import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import { type NamelessFile, openNamelessFile } from "#kit/store/nameless-file.ts";
import { maxBlobBytes, maxBufferedBytes } from "./s3-limits.ts";

/** Bytes whose number and digest are known, which one PUT needs before its first byte. */
export interface Spooled extends AsyncDisposable {
  sizeBytes: number;
  /** Lower-case hexadecimal. */
  sha256: string;
  /** Them all, from the beginning; as often as one likes. */
  body(): Buffer | Readable;
}

/**
 * Takes all that `source` brings: small blobs into memory, larger ones into a nameless file on the disk of `folder`. Rejects with the source's error, the signal's reason,
 * SERVICE_UNAVAILABLE where the folder's disk takes no writes, or a RangeError where S3 would not take so much.
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
