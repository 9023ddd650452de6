import { unavailable } from "#kit/base/errors.ts";
import type { SqliteDatabase } from "./sqlite.ts";

/** SQLite's codes for "not now": busy, locked, out of memory, I/O error, full, cannot open. */
const awayCodes = new Set([5, 6, 7, 10, 13, 14]);

/** The same database. It refuses with SERVICE_UNAVAILABLE where it is away. Any other error is unchanged. */
export function refusingWhenAway(db: SqliteDatabase): SqliteDatabase {
  return {
    ...db,
    all: mapping(db.all),
    get: mapping(db.get),
    run: mapping(db.run),
    migrate: mapping(db.migrate),
    write: (work, options) => db.write(mapping(work), options),
  };
}

function mapping<A extends unknown[], T>(work: (...args: A) => T): (...args: A) => T {
  return (...args) => {
    try {
      return work(...args);
    } catch (error) {
      throw mapped(error);
    }
  };
}

function mapped(error: unknown): unknown {
  const code = error instanceof Error && "errcode" in error ? Number(error.errcode) & 0xff : 0;
  return awayCodes.has(code) ? unavailable(error) : error;
}
