import { createHash } from "node:crypto";
import { type FileHandle, open, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { onDisk } from "../disk-errors.ts";
import type { Ids } from "../ids.ts";
import { maxBlobBytes, maxBufferedBytes, spoolChunkBytes } from "./s3-limits.ts";

/** Bytes whose number and digest are known, which one PUT needs before its first byte. */
export interface Spooled extends AsyncDisposable {
  sizeBytes: number;
  /** Lower-case hexadecimal. */
  sha256: string;
  /** Them all, from the beginning; as often as one likes. */
  body(): Buffer | Readable;
}

/**
 * Takes all that `source` brings: small blobs into memory, larger ones into a file in `folder` that has lost its name
 * already, so that nothing is left of it when the process dies. Rejects with the source's error, the signal's reason,
 * SERVICE_UNAVAILABLE where the folder's disk takes no writes, or a RangeError where S3 would not take so much.
 */
export async function spool(
  source: AsyncIterable<Uint8Array>,
  options: { folder: string; ids: Ids; signal: AbortSignal | undefined },
): Promise<Spooled> {
  const { signal } = options;
  const hash = createHash("sha256");
  let held: Uint8Array[] = [];
  let heldBytes = 0;
  let sizeBytes = 0;
  let file: FileHandle | undefined;
  try {
    for await (const chunk of source) {
      signal?.throwIfAborted();
      hash.update(chunk);
      sizeBytes += chunk.byteLength;
      if (sizeBytes > maxBlobBytes)
        throw new RangeError(`a blob has at most ${maxBlobBytes} bytes`);
      if (!file && heldBytes + chunk.byteLength <= maxBufferedBytes) {
        // Whoever brings bytes may use their memory again.
        held.push(Buffer.from(chunk));
        heldBytes += chunk.byteLength;
        continue;
      }
      if (!file) {
        file = await onDisk(namelessFile(options.folder, options.ids));
        for (const one of held) await onDisk(writeAll(file, one));
        held = [];
      }
      await onDisk(writeAll(file, chunk));
    }
    signal?.throwIfAborted();
  } catch (error) {
    await file?.close();
    throw error;
  }
  const buffered = Buffer.concat(held);
  return {
    sizeBytes,
    sha256: hash.digest("hex"),
    body: () =>
      file?.createReadStream({ start: 0, autoClose: false, highWaterMark: spoolChunkBytes }) ??
      buffered,
    [Symbol.asyncDispose]: async () => file?.close(),
  };
}

async function namelessFile(folder: string, ids: Ids): Promise<FileHandle> {
  const path = join(folder, `genmesh-${ids.make("put")}`);
  const file = await open(path, "wx+", 0o600);
  await rm(path);
  return file;
}

async function writeAll(file: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let done = 0; done < chunk.byteLength; ) {
    done += (await file.write(chunk, done)).bytesWritten;
  }
}
