import { chmodSync, closeSync, existsSync, mkdirSync, openSync, statSync } from "node:fs";
import { chmod, opendir, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";

/** Mode of what this process keeps: prompts and tokens are nothing for other users of the machine. */
export const privateFileMode = 0o600;
export const privateFolderMode = 0o700;
/** What group and others may do. */
const othersBits = 0o077;

/** Can other users of the machine do anything with it? False where it is not there. */
export function isOpenToOthers(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return found !== undefined && (found.mode & othersBits) !== 0;
}

/**
 * Makes a folder with the parents that are missing. Node's own recursion never ends where a parent exists and says of what
 * is made in it that it does not (`/proc`).
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

/** Makes a file that is not there for this user alone, under any umask, and takes one that is there from others. */
export function openPrivately(file: string): void {
  closeSync(openSync(file, "a", privateFileMode));
  closeToOthers(file);
}

/** Takes a file or a folder from others; one that is not there, or is not ours to change, stays as it is. */
export function closeToOthers(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found || (found.mode & othersBits) === 0) return;
  try {
    chmodSync(path, found.mode & ~othersBits);
  } catch (error) {
    // On a volume of another owner its modes are that one's affair.
    if (!isNotOurs(error)) throw error;
  }
}

/**
 * The same of a folder with all that is in it. One that is closed already is not looked into: no other user gets at what is
 * there, and what this version puts there is closed itself.
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
  // Last: where this breaks off, the next start begins again.
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
