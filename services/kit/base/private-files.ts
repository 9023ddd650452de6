// Keeps other users of the machine away from the files and folders of a process: data, blobs, scratch. SQLite and the host call
// it.

import { chmodSync, closeSync, existsSync, mkdirSync, openSync, statSync } from "node:fs";
import { chmod, opendir, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";

/** Mode of the files of this process: they hold prompts and tokens, which other users of the machine must not read. */
export const privateFileMode = 0o600;
export const privateFolderMode = 0o700;
/** The rights of group and others. */
const othersBits = 0o077;

/** Can other users of the machine do anything with it? False where it does not exist. */
export function isOpenToOthers(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return found !== undefined && (found.mode & othersBits) !== 0;
}

/**
 * Makes a folder with its missing parents. Node's own recursion never ends where a parent exists and yet reports everything made
 * in it as missing (`/proc`).
 */
export function makePrivateFolder(path: string): void {
  const missing = [resolve(path)];
  for (let at = dirname(resolve(path)); !existsSync(at); at = dirname(at)) missing.unshift(at);
  for (const folder of missing) {
    try {
      mkdirSync(folder, { mode: privateFolderMode });
    } catch (error) {
      if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw error;
    }
  }
}

/** Makes a missing file for this user alone, under any umask. Takes other users' rights from a file that exists. */
export function openPrivately(file: string): void {
  closeSync(openSync(file, "a", privateFileMode));
  closeToOthers(file);
}

/**
 * Takes other users' rights from a file or a folder. One that does not exist, or that this user may not change, stays unchanged.
 */
export function closeToOthers(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found || (found.mode & othersBits) === 0) return;
  try {
    chmodSync(path, found.mode & ~othersBits);
  } catch (error) {
    // On a volume of another owner, modes are that owner's business.
    if (!isNotOurs(error)) throw error;
  }
}

/**
 * Takes other users' rights from a folder and everything in it. A folder that is closed already is not read. No other user
 * reaches its files, and this version closes each file that it makes there.
 */
export async function closeFolderToOthers(folder: string): Promise<void> {
  if (isOpenToOthers(folder)) await closeAll(folder);
}

async function closeAll(folder: string): Promise<void> {
  for await (const entry of await opendir(folder)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await closeAll(path);
    else if (entry.isFile()) await close(path);
  }
  // The folder comes last: where this is interrupted, the next start begins again.
  await close(folder);
}

async function close(path: string): Promise<void> {
  try {
    const { mode } = await stat(path);
    if ((mode & othersBits) !== 0) await chmod(path, mode & ~othersBits);
  } catch (error) {
    if (!isNotOurs(error)) throw error;
  }
}

function isNotOurs(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return code === "EPERM" || code === "EROFS" || code === "ENOTSUP" || code === "ENOENT";
}
