import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StatementSync } from "node:sqlite";
import { afterEach, onTestFinished, vi } from "vitest";
import { openSqlite, type SqliteDatabase } from "#kit/store/sqlite.ts";

/** Databases in files of the test's own. */
export interface SqliteFiles {
  /** A path without a database. */
  newFile(): Promise<string>;
  connect(file: string): SqliteDatabase;
  /** Makes something of two connections to one new file, as if another process had it open too. */
  connectTwice<T>(make: (db: SqliteDatabase) => T): Promise<[T, T]>;
}

/** Called at a file's top. After each test, connections are closed and files removed. */
export function sqliteFiles(): SqliteFiles {
  const open: SqliteDatabase[] = [];
  const folders: string[] = [];
  afterEach(async () => {
    for (const db of open.splice(0)) db[Symbol.dispose]();
    for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
  });
  const files: SqliteFiles = {
    async newFile() {
      const folder = await mkdtemp(join(tmpdir(), "genmesh-sqlite-"));
      folders.push(folder);
      return join(folder, "genmesh.db");
    },
    connect(file) {
      const db = openSqlite(file);
      open.push(db);
      return db;
    },
    async connectTwice(make) {
      const file = await files.newFile();
      return [make(files.connect(file)), make(files.connect(file))];
    },
  };
  return files;
}

/** From now on reads of all databases fail with this code of SQLite, until the test is over. */
export function failReads(errcode: number): void {
  for (const read of ["all", "get"] as const) {
    vi.spyOn(StatementSync.prototype, read).mockImplementation(() => failRead(errcode));
  }
  onTestFinished(() => void vi.restoreAllMocks());
}

/** A read that fails with this code of SQLite. */
export function failRead(errcode: number): never {
  throw Object.assign(new Error("failed"), { errcode });
}
