import { join } from "node:path";
import type { Database } from "#kit/database.ts";
import { openSqlite } from "#kit/sqlite.ts";

/** The database of a world, until the world ends. */
export interface WorldDatabase extends AsyncDisposable {
  database: Database;
}

/** Where the worlds of a test file keep their state. A file may say otherwise. */
export interface WorldDatabases {
  /** The same folder gives the same state. */
  open(folder: string): WorldDatabase;
  /** Jobs that are very many, and yet submitted within a few seconds. */
  many: number;
}

/** SQLite, unless a file has said otherwise. */
export const worldDatabases: WorldDatabases = {
  many: 1_000,
  open(folder) {
    const sqlite = openSqlite(join(folder, "genmesh.db"));
    return {
      database: { kind: "sqlite", sqlite },
      [Symbol.asyncDispose]: async () => sqlite[Symbol.dispose](),
    };
  },
};
