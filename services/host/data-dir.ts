// Opens the folder with the embedded state of a process, and keeps a second process out of it.

import { chmodSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import {
  closeToOthers,
  isOpenToOthers,
  makePrivateFolder,
  openPrivately,
  privateFileMode,
} from "#kit/base/private-files.ts";
import { ConfigError } from "./env.ts";

/** The embedded state of a run in one process. One process at a time holds it. */
export interface DataDir extends Disposable {
  readonly path: string;
  /** Can other users of the machine read its files, except those that are closed themselves? */
  readonly isOpenToOthers: boolean;
  /** The text of a small private file, or undefined. */
  read(name: string): string | undefined;
  /** Writes a small private file (mode 0600), whole or not at all. */
  write(name: string, text: string): void;
  remove(name: string): void;
}

/**
 * Opens (and makes) a data directory. Throws ConfigError where another process holds it, and names that process. The lock is a SQLite
 * lock of the operating system, so it ends with its process, however that dies.
 */
export function openDataDir(path: string): DataDir {
  try {
    makePrivateFolder(path);
  } catch (error) {
    throw new ConfigError(
      `GENMESH_DATA_DIR must be a folder that can be written: ${(error as Error).message}`,
    );
  }
  const holderFile = join(path, "holder");
  const lockFile = join(path, "lock.sqlite");
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
  openPrivately(holderFile);
  writeFileSync(holderFile, `process ${process.pid}`);
  return {
    path,
    isOpenToOthers: isOpenToOthers(path),
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
    [Symbol.dispose]() {
      rmSync(holderFile, { force: true });
      lock.close();
    },
  };
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
