// Keeps bytes on disk for a while that are too many for memory, in a file that no crash leaves behind.

import { randomUUID } from "node:crypto";
import { type FileHandle, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { onDisk } from "#kit/base/disk-errors.ts";

/** Bytes that are read at a time when the file is streamed. */
const readChunkBytes = 128 * 1024;

/**
 * A file that has no name, so that nothing is left of it when the process dies. Where the disk cannot work now, each step refuses with
 * SERVICE_UNAVAILABLE.
 */
export interface NamelessFile extends AsyncDisposable {
  /** Writes at the end. Where this fails, the bytes before it stay unchanged. */
  append(chunk: Uint8Array): Promise<void>;
  /** Streams all of it. It may be called several times, and a reader may leave before the end. */
  stream(): Readable;
  /** Reads all of it into memory. */
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
    stream: () => Readable.from(chunksOf(file, sizeBytes), { objectMode: false }),
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

/** A stream of Node's own would close the file when its reader leaves early. */
async function* chunksOf(file: FileHandle, sizeBytes: number): AsyncGenerator<Buffer, void> {
  for (let at = 0; at < sizeBytes; ) {
    const room = Buffer.allocUnsafeSlow(Math.min(readChunkBytes, sizeBytes - at));
    const { bytesRead } = await onDisk(file.read(room, 0, room.length, at));
    if (bytesRead === 0) throw new Error("a file ended early");
    at += bytesRead;
    yield room.subarray(0, bytesRead);
  }
}
