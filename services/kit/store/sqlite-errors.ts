import { unavailable } from "#kit/base/errors.ts";
import type { SqliteDatabase } from "./sqlite.ts";

/** SQLite's codes for "not now": busy, locked, out of memory, I/O error, full, cannot open. */
const awayCodes = new Set([5, 6, 7, 10, 13, 14]);

/** Runs `work`. The error of a database that is away becomes SERVICE_UNAVAILABLE. Any other error is unchanged. */
export function mapErrors<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    const code = error instanceof Error && "errcode" in error ? Number(error.errcode) & 0xff : 0;
    if (!awayCodes.has(code)) throw error;
    throw unavailable(error);
  }
}

/** The same database. Its statements refuse with SERVICE_UNAVAILABLE where it is away. */
export function refusingWhenAway(db: SqliteDatabase): SqliteDatabase {
  return {
    ...db,
    all: (sql, ...values) => mapErrors(() => db.all(sql, ...values)),
    get: (sql, ...values) => mapErrors(() => db.get(sql, ...values)),
    run: (sql, ...values) => mapErrors(() => db.run(sql, ...values)),
    write: (work, options) => db.write((tx) => mapErrors(() => work(tx)), options),
  };
}
