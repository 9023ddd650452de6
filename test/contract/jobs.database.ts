import { join } from "node:path";
import type { Database } from "#kit/database.ts";
import { openSqlite } from "#kit/sqlite.ts";

/** The database of a world, until the world ends. */
export interface WorldDatabase extends AsyncDisposable {
  database: Database;
}

/** Opens where a world keeps its state; the same folder gives the same state. */
export type OpenWorldDatabase = (folder: string) => WorldDatabase;

/** A file in the world's folder. */
export function openSqliteIn(folder: string): WorldDatabase {
  const sqlite = openSqlite(join(folder, "genmesh.db"));
  return {
    database: { kind: "sqlite", sqlite },
    [Symbol.asyncDispose]: async () => sqlite[Symbol.dispose](),
  };
}
