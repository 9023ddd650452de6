import { unavailable } from "#kit/base/errors.ts";
import type { SqliteDatabase, SqlValue } from "./sqlite.ts";

/** SQLite's codes for "not now": busy, locked, out of memory, I/O error, full, cannot open. */
const awayCodes = new Set([5, 6, 7, 10, 13, 14]);

/** Runs `work`. The error of a database that is away becomes SERVICE_UNAVAILABLE. Any other error is unchanged. */
export function mapErrors<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw mapped(error);
  }
}

/** The same database. Its statements refuse with SERVICE_UNAVAILABLE where it is away. */
export function refusingWhenAway(db: SqliteDatabase): SqliteDatabase {
  // Without a function that is made for each statement.
  const mapping =
    <T>(run: (sql: string, ...values: SqlValue[]) => T) =>
    (sql: string, ...values: SqlValue[]): T => {
      try {
        return run(sql, ...values);
      } catch (error) {
        throw mapped(error);
      }
    };
  return {
    ...db,
    all: mapping(db.all),
    get: mapping(db.get),
    run: mapping(db.run),
    write: (work, options) => db.write((tx) => mapErrors(() => work(tx)), options),
  };
}

function mapped(error: unknown): unknown {
  const code = error instanceof Error && "errcode" in error ? Number(error.errcode) & 0xff : 0;
  return awayCodes.has(code) ? unavailable(error) : error;
}
