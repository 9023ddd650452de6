import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { ConfigError } from "./env.ts";

/** The embedded state of a one-process run, held by one process at a time. */
export interface DataDir extends Disposable {
  readonly path: string;
  /** The text of a small private file, or undefined. */
  read(name: string): string | undefined;
  /** Writes a small private file (mode 0600), whole or not at all. */
  write(name: string, text: string): void;
  remove(name: string): void;
}

/**
 * Opens (and makes) a data directory. Throws ConfigError where another process holds it, naming that process: the lock is
 * a SQLite lock of the operating system, so it ends with its process, however that dies.
 */
export function openDataDir(path: string): DataDir {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new ConfigError(
      `GENMESH_DATA_DIR must be a folder that can be written: ${(error as Error).message}`,
    );
  }
  const holderFile = join(path, "holder");
  const lock = new DatabaseSync(join(path, "lock.sqlite"));
  try {
    lock.exec("PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE");
  } catch {
    lock.close();
    throw new ConfigError(
      `GENMESH_DATA_DIR ${path} is in use by ${readText(holderFile) ?? "another process"}: stop it, or choose another directory`,
    );
  }
  writeFileSync(holderFile, `process ${process.pid}`, { mode: 0o600 });
  return {
    path,
    read: (name) => readText(join(path, name)),
    write(name, text) {
      const file = join(path, name);
      writeFileSync(`${file}.new`, text, { mode: 0o600, flush: true });
      chmodSync(`${file}.new`, 0o600);
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
