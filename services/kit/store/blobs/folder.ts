// Keeps blobs as files on a disk, for installations without S3.

import { createHash } from "node:crypto";
import { link, mkdir, open, opendir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { ofDisk, onDisk } from "#kit/base/disk-errors.ts";
import type { Ids } from "#kit/base/ids.ts";
import {
  closeFolderToOthers,
  makePrivateFolder,
  privateFileMode,
  privateFolderMode,
} from "#kit/base/private-files.ts";
import { syncPath } from "#kit/base/sync-path.ts";
import {
  BlobExistsError,
  BlobNotFoundError,
  type BlobStat,
  type BlobStore,
  checkBlobKey,
  type ListedBlob,
  type StoredBlob,
} from "#kit/store/blobs.ts";
import type { Clock } from "#kit/time/clock.ts";

/** Options of a folder store. */
export interface FolderBlobsOptions {
  /** Made where it does not exist. One process at a time writes to it. */
  folder: string;
  clock: Clock;
  ids: Ids;
}

/** Unfinished writes of a process that died are older than this. One write never takes that long. */
const staleAfterMs = 60 * 60_000;
/** A folder beside the shards. A part of a key never begins with a dot. */
export const unfinished = ".unfinished";

/**
 * Blobs as files: `<folder>/<2 hex>/<key with ~ for />`, so that a million of them are 4,000 a folder. Each is written beside its
 * place, synced, and then linked into it. Linking fails where the name is taken, so no blob is ever overwritten. A crash leaves at most
 * an unfinished file, which the next start removes. Where the disk is full, fails or takes no writes, an operation is refused with
 * SERVICE_UNAVAILABLE.
 */
export async function openFolderBlobs(options: FolderBlobsOptions): Promise<BlobStore> {
  const { folder, ids } = options;
  const scratch = join(folder, unfinished);
  makePrivateFolder(scratch);
  await closeFolderToOthers(folder);
  await removeStale(scratch, options.clock.now() - staleAfterMs);
  const pathOf = (key: string) => join(folder, shardOf(checkBlobKey(key)), fileName(key));
  return {
    async put(key, source, signal) {
      const path = pathOf(key);
      const draft = join(scratch, ids.make("put"));
      try {
        const stored = await writeDraft(draft, source, signal);
        await onDisk(publish(folder, draft, path, key));
        return stored;
      } finally {
        await rm(draft, { force: true });
      }
    },
    openRead: async (key, range) => openFile(pathOf(key), range),
    stat: async (key) => onDisk(statOf(pathOf(key))),
    delete: async (key) => onDisk(rm(pathOf(key), { force: true })),
    list: (prefix = "") => listFolder(folder, prefix),
  };
}

async function writeDraft(
  draft: string,
  source: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): Promise<StoredBlob> {
  const hash = createHash("sha256");
  let sizeBytes = 0;
  await using file = await onDisk(open(draft, "wx", privateFileMode));
  signal?.throwIfAborted();
  for await (const chunk of source) {
    signal?.throwIfAborted();
    hash.update(chunk);
    sizeBytes += chunk.byteLength;
    // An error of `source` is thrown unchanged. Only errors of the disk are the store's.
    await onDisk(writeAll(file, chunk));
  }
  signal?.throwIfAborted();
  await onDisk(file.sync());
  return { sizeBytes, sha256: hash.digest("hex") };
}

async function writeAll(file: Awaited<ReturnType<typeof open>>, chunk: Uint8Array): Promise<void> {
  for (let done = 0; done < chunk.byteLength; ) {
    done += (await file.write(chunk, done)).bytesWritten;
  }
}

async function publish(folder: string, draft: string, path: string, key: string): Promise<void> {
  const shard = join(folder, shardOf(key));
  // The new folder's own entry must survive a crash too.
  if (await mkdir(shard, { recursive: true, mode: privateFolderMode })) await syncPath(folder);
  try {
    await link(draft, path);
  } catch (error) {
    throw isCode(error, "EEXIST") ? new BlobExistsError(`the key is taken: ${key}`) : error;
  }
  await syncPath(shard);
}

async function openFile(
  path: string,
  range: { start: number; end: number } | undefined,
): Promise<Readable> {
  try {
    const file = await open(path, "r");
    return file.createReadStream({ ...range, highWaterMark: readChunkBytes });
  } catch (error) {
    throw isCode(error, "ENOENT") ? new BlobNotFoundError("no such blob") : ofDisk(error);
  }
}

/** Large enough that reading costs little beside sending, and small enough for thousands of slow readers. */
const readChunkBytes = 128 * 1024;

async function statOf(path: string): Promise<BlobStat | undefined> {
  try {
    const { size, mtimeMs } = await stat(path);
    return { sizeBytes: size, storedAtMs: Math.floor(mtimeMs) };
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

async function* listFolder(folder: string, prefix: string): AsyncIterable<ListedBlob> {
  try {
    for await (const shard of await opendir(folder)) {
      if (!shard.isDirectory() || shard.name === unfinished) continue;
      for await (const entry of await opendir(join(folder, shard.name))) {
        const key = entry.name.replaceAll("~", "/");
        if (!entry.isFile() || !key.startsWith(prefix)) continue;
        const found = await statOf(join(folder, shard.name, entry.name));
        if (found) yield { key, ...found };
      }
    }
  } catch (error) {
    throw ofDisk(error);
  }
}

async function removeStale(scratch: string, beforeMs: number): Promise<void> {
  for await (const entry of await opendir(scratch)) {
    const path = join(scratch, entry.name);
    const found = await statOf(path);
    if (found && found.storedAtMs < beforeMs) await rm(path, { force: true });
  }
}

function shardOf(key: string): string {
  return createHash("sha256").update(key).digest("hex").slice(0, 2);
}

function fileName(key: string): string {
  return key.replaceAll("/", "~");
}

function isCode(error: unknown, code: string): boolean {
  return (error as { code?: unknown } | null)?.code === code;
}
