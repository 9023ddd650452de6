// Copies the blobs of a folder store for a backup, while processes use it.

import { constants } from "node:fs";
import { copyFile, link, mkdir, opendir, stat } from "node:fs/promises";
import { join } from "node:path";
import { closeToOthers, makePrivateFolder, privateFolderMode } from "#kit/base/private-files.ts";
import { syncPath } from "#kit/base/sync-path.ts";
import { unfinished } from "./folder.ts";

/** The blobs of a copy, and their bytes. */
export interface CopiedBlobs {
  count: number;
  bytes: number;
}

/**
 * Copies the blobs of a folder store into a new one. Processes may use the old one meanwhile: a blob that they delete before its turn is
 * left out. On one disk both folders then name the same bytes, which is safe because a store never writes into a blob that it has. The
 * copy survives a loss of power when this resolves. Its files are readable by their owner alone.
 */
export async function copyFolderBlobs(from: string, to: string): Promise<CopiedBlobs> {
  const copied = { count: 0, bytes: 0 };
  makePrivateFolder(to);
  for await (const shard of await opendir(from)) {
    if (!shard.isDirectory() || shard.name === unfinished) continue;
    const [source, target] = [join(from, shard.name), join(to, shard.name)];
    await mkdir(target, { mode: privateFolderMode });
    for await (const entry of await opendir(source)) {
      if (!entry.isFile()) continue;
      const copy = join(target, entry.name);
      if (!(await copyBlob(join(source, entry.name), copy))) continue;
      closeToOthers(copy);
      copied.count++;
      copied.bytes += (await stat(copy)).size;
    }
    await syncPath(target);
  }
  await syncPath(to);
  return copied;
}

/** Errors of a link where only a copy can be made: another disk, a file system without links, or a file with too many of them. */
const needsCopy: ReadonlySet<unknown> = new Set(["EXDEV", "EPERM", "ENOTSUP", "ENOSYS", "EMLINK"]);

/** False where the blob is no longer there. */
async function copyBlob(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to).catch(async (error) => {
      if (!needsCopy.has(codeOf(error))) throw error;
      await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
      await syncPath(to);
    });
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown } | null)?.code;
}
