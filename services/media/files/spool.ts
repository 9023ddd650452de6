// Holds an upload's bytes in a temporary file until they are known to be an image.

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, opendir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { onDisk } from "#kit/base/disk-errors.ts";
import type { Ids } from "#kit/base/ids.ts";
import type { Clock } from "#kit/time/clock.ts";
import { staleSpoolMs } from "./limits.ts";

/** Bytes in a file, which is removed when this is disposed of. */
export interface Spooled extends AsyncDisposable {
  path: string;
  sizeBytes: number;
  /** Lower-case hexadecimal. */
  sha256: string;
  /** Reads them, a little at a time. It may be called several times. */
  open(): AsyncIterable<Uint8Array>;
}

/** Holds bytes of unknown length until they are known to be worth keeping. */
export interface Spooler {
  /** Makes the folder, and removes files that a dead process left there. */
  start(): Promise<void>;
  /**
   * Writes all bytes of `source`, a chunk at a time. Where `source` fails, or brings more than `maxBytes` (then `onTooLarge` is
   * thrown), nothing is left. Refuses with SERVICE_UNAVAILABLE where the disk takes no writes.
   */
  take(
    source: AsyncIterable<Uint8Array>,
    maxBytes: number,
    onTooLarge: () => Error,
  ): Promise<Spooled>;
}

/** Large enough that reading costs little, and small enough for hundreds of readers. */
const readChunkBytes = 128 * 1024;
const namePrefix = "upload";

/** Spools into `folder`. */
export function createSpooler(deps: { folder: string; clock: Clock; ids: Ids }): Spooler {
  const { folder, clock, ids } = deps;
  return {
    async start() {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await removeStale(folder, clock.now() - staleSpoolMs);
    },
    async take(source, maxBytes, onTooLarge) {
      const path = join(folder, ids.make(namePrefix));
      const remove = () => rm(path, { force: true });
      try {
        const written = await write(path, source, maxBytes, onTooLarge);
        return {
          path,
          ...written,
          open: () => createReadStream(path, { highWaterMark: readChunkBytes }),
          [Symbol.asyncDispose]: remove,
        };
      } catch (error) {
        await remove();
        throw error;
      }
    },
  };
}

async function write(
  path: string,
  source: AsyncIterable<Uint8Array>,
  maxBytes: number,
  onTooLarge: () => Error,
): Promise<{ sizeBytes: number; sha256: string }> {
  const hash = createHash("sha256");
  let sizeBytes = 0;
  await using file = await onDisk(open(path, "wx", 0o600));
  for await (const chunk of source) {
    sizeBytes += chunk.byteLength;
    if (sizeBytes > maxBytes) throw onTooLarge();
    hash.update(chunk);
    for (let done = 0; done < chunk.byteLength; ) {
      done += (await onDisk(file.write(chunk, done))).bytesWritten;
    }
  }
  return { sizeBytes, sha256: hash.digest("hex") };
}

async function removeStale(folder: string, beforeMs: number): Promise<void> {
  for await (const entry of await opendir(folder)) {
    if (!entry.name.startsWith(`${namePrefix}_`)) continue;
    const path = join(folder, entry.name);
    const found = await stat(path).catch(() => undefined);
    if (found && found.mtimeMs < beforeMs) await rm(path, { force: true });
  }
}
