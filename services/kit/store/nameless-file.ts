import { randomUUID } from "node:crypto";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { onDisk } from "#kit/base/disk-errors.ts";

/** Reading one back as a stream, in bytes at a time. */
const readChunkBytes = 128 * 1024;

/**
 * A file that has lost its name already, so that nothing is left of it when the process dies. Where the disk cannot do its work now,
 * each step refuses with SERVICE_UNAVAILABLE.
 */
export interface NamelessFile extends AsyncDisposable {
  /** Writes at the end. What was written before stays as it is where this fails. */
  append(chunk: Uint8Array): Promise<void>;
  /** Streams it all, as often as one likes. */
  stream(): Readable;
  /** Reads it all into memory. */
  whole(): Promise<Buffer<ArrayBuffer>>;
}

/** Makes one on the disk of that folder. */
export async function openNamelessFile(folder: string): Promise<NamelessFile> {
  const path = join(folder, `genmesh-${randomUUID()}`);
  const file = await onDisk(open(path, "wx+", 0o600));
  try {
    await onDisk(rm(path));
  } catch (error) {
    await file.close();
    throw error;
  }
  let sizeBytes = 0;
  return {
    async append(chunk) {
      for (let done = 0; done < chunk.byteLength; ) {
        const left = chunk.byteLength - done;
        const wrote = await onDisk(file.write(chunk, done, left, sizeBytes + done));
        done += wrote.bytesWritten;
      }
      sizeBytes += chunk.byteLength;
    },
    stream: () =>
      file.createReadStream({ start: 0, autoClose: false, highWaterMark: readChunkBytes }),
    async whole() {
      const bytes = Buffer.allocUnsafeSlow(sizeBytes);
      for (let at = 0; at < sizeBytes; ) {
        const { bytesRead } = await onDisk(file.read(bytes, at, sizeBytes - at, at));
        if (bytesRead === 0) throw new Error("a file ended early");
        at += bytesRead;
      }
      return bytes;
    },
    [Symbol.asyncDispose]: () => file.close(),
  };
}
