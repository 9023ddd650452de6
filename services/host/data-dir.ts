// Opens the folder with the embedded state of a process, and keeps a second process out of it.

import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import {
  closeToOthers,
  isOpenToOthers,
  makePrivateFolder,
  openPrivately,
  privateFileMode,
} from "#kit/base/private-files.ts";
import { syncPath } from "#kit/base/sync-path.ts";
import { ConfigError } from "./env.ts";

/** The small files of a data directory that a backup keeps. Its other files are stores, or belong to the running process. */
export const keptFiles = [
  "admin-token",
  "mesh-token",
  "secrets-key",
  "bootstrapped",
  "bootstrap-key",
] as const;
export type KeptFile = (typeof keptFiles)[number];

/** Present while a backup is brought back. No process serves a state of which a part may be missing. */
const restoringFile = "restoring";
const [lockName, holderName] = ["lock.sqlite", "holder"];

/** The embedded state of a run in one process. One process at a time holds it. */
export interface DataDir extends Disposable {
  readonly path: string;
  /** Can other users of the machine read its files, except those that are closed themselves? */
  readonly isOpenToOthers: boolean;
  /** Is nothing in it but what opening it makes? */
  isNew(): boolean;
  /** The text of a small private file, or undefined. */
  read(name: KeptFile): string | undefined;
  /** Writes a small private file (mode 0600), whole or not at all. */
  write(name: KeptFile, text: string): void;
  remove(name: KeptFile): void;
  /** Runs `work`, which fills the directory. Where it does not end well, the directory can no longer be opened. */
  fill(work: () => Promise<void>): Promise<void>;
}

/**
 * Opens (and makes) a data directory. Throws ConfigError where another process holds it, and names that process, and where a restore
 * into it broke off. The lock is a SQLite lock of the operating system, so it ends with its process, however that dies.
 */
export function openDataDir(path: string): DataDir {
  try {
    makePrivateFolder(path);
  } catch (error) {
    throw new ConfigError(
      `GENMESH_DATA_DIR must be a folder that can be written: ${(error as Error).message}`,
    );
  }
  const holderFile = join(path, holderName);
  const lockFile = join(path, lockName);
  openPrivately(lockFile);
  const lock = new DatabaseSync(lockFile);
  try {
    lock.exec("PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE");
  } catch {
    lock.close();
    throw new ConfigError(
      `GENMESH_DATA_DIR ${path} is in use by ${readText(holderFile) ?? "another process"}: stop it, or choose another directory`,
    );
  }
  const restoring = join(path, restoringFile);
  if (existsSync(restoring)) {
    lock.close();
    throw new ConfigError(
      `GENMESH_DATA_DIR ${path} has a restore that broke off: remove all that is in it, and restore again`,
    );
  }
  openPrivately(holderFile);
  writeFileSync(holderFile, `process ${process.pid}`);
  return {
    path,
    isOpenToOthers: isOpenToOthers(path),
    isNew: () => readdirSync(path).every(isOfOpening),
    read(name) {
      const file = join(path, name);
      closeToOthers(file);
      return readText(file);
    },
    write(name, text) {
      const file = join(path, name);
      writeFileSync(`${file}.new`, text, { mode: privateFileMode, flush: true });
      chmodSync(`${file}.new`, privateFileMode);
      renameSync(`${file}.new`, file);
    },
    remove: (name) => rmSync(join(path, name), { force: true }),
    async fill(work) {
      openPrivately(restoring);
      await syncPath(path);
      await work();
      rmSync(restoring);
    },
    [Symbol.dispose]() {
      rmSync(holderFile, { force: true });
      lock.close();
    },
  };
}

/** SQLite has a journal beside a locked file. */
function isOfOpening(name: string): boolean {
  return name === holderName || name.startsWith(lockName);
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
