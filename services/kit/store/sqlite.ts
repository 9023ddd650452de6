// Opens the SQLite file of a process, runs statements and transactions in it, and brings its tables up to this build.

import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { closeToOthers, openPrivately } from "#kit/base/private-files.ts";
import { isTraced, traced } from "#kit/telemetry/spans.ts";
import { refusingWhenAway } from "./sqlite-errors.ts";
import {
  Committing,
  createQueue,
  type SqlTransaction,
  type WriteOptions,
} from "./sqlite-transaction.ts";

export type SqlValue = SQLInputValue;
/** Integers come back as bigint, so that money never passes through a float. */
export type SqlRow = Record<string, string | bigint | number | Uint8Array | null>;

/** Statements inside a transaction, or outside for reads. Statements are prepared once and kept. */
export interface SqlRunner {
  all(sql: string, ...values: SqlValue[]): SqlRow[];
  get(sql: string, ...values: SqlValue[]): SqlRow | undefined;
  /** Runs a change. Answers how many rows it changed. */
  run(sql: string, ...values: SqlValue[]): number;
}

/** One SQLite file, shared by the services of a process. All of it refuses with SERVICE_UNAVAILABLE where the file is away. */
export interface SqliteDatabase extends SqlRunner, Disposable {
  /**
   * Runs `work` as one transaction. Its changes survive the death of this process when the promise resolves. Transactions that come in
   * one turn of the event loop, or soon after, share a commit, in their order. One that throws is undone alone. `work` must not await.
   * Except through `tx` it must do only things that may be done twice. It runs again where a transaction beside it had to be undone.
   */
  write<T>(work: (tx: SqlTransaction) => T, options?: WriteOptions): Promise<T>;
  /** Brings `component`'s tables up to the last step, each step once, in order. */
  migrate(component: string, steps: readonly string[]): void;
}

/** Milliseconds that a statement waits for another process (an operator with the sqlite3 shell). */
const busyTimeoutMs = 5_000;
/** Pages of 4 KiB in the log when they are copied into the file. A page that is written often is copied once. */
const checkpointPages = 4_000;

/**
 * Opens (and makes) a database file; ":memory:" for tests. It has a write-ahead log and `synchronous=NORMAL`. A killed process loses
 * nothing. After a power cut the file is whole, but may lack the last moment, for all services together (one file, one log).
 */
export function openSqlite(file: string): SqliteDatabase {
  if (file !== ":memory:") closeDatabaseFiles(file);
  const db = new DatabaseSync(file, { readBigInts: true });
  db.exec(`PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA busy_timeout=${busyTimeoutMs};
    PRAGMA foreign_keys=ON; PRAGMA cache_size=-32000; PRAGMA wal_autocheckpoint=${checkpointPages}`);
  const runner = createRunner(db);
  const queue = createQueue(new Committing(db, runner));
  return {
    all: refusingWhenAway(runner.all),
    get: refusingWhenAway(runner.get),
    run: refusingWhenAway(runner.run),
    write: (work, options) =>
      isTraced()
        ? traced(transactionSpan, () => queue.add(work, options))
        : queue.add(work, options),
    migrate: refusingWhenAway((component: string, steps: readonly string[]) =>
      migrate(db, runner, component, steps),
    ),
    [Symbol.dispose]() {
      queue.finish();
      db.close();
    },
  };
}

/** Closes the file to other users, and those beside it. SQLite gives those the file's mode when it makes them. */
function closeDatabaseFiles(file: string): void {
  openPrivately(file);
  for (const suffix of ["-wal", "-shm", "-journal"]) closeToOthers(`${file}${suffix}`);
}

const transactionSpan = {
  family: "db.client",
  name: "transaction",
  attributes: { "db.system.name": "sqlite", "db.operation.name": "transaction" },
} as const;

function createRunner(db: DatabaseSync): SqlRunner {
  const statements = new Map<string, StatementSync>();
  const prepare = (sql: string) => {
    let statement = statements.get(sql);
    if (!statement) {
      statement = db.prepare(sql);
      statements.set(sql, statement);
    }
    return statement;
  };
  return {
    all: (sql, ...values) => prepare(sql).all(...values) as SqlRow[],
    get: (sql, ...values) => prepare(sql).get(...values) as SqlRow | undefined,
    run: (sql, ...values) => Number(prepare(sql).run(...values).changes),
  };
}

function migrate(
  db: DatabaseSync,
  runner: SqlRunner,
  component: string,
  steps: readonly string[],
): void {
  // The version is read inside the transaction, so that of two processes that start together one makes the tables.
  db.exec("BEGIN IMMEDIATE");
  try {
    db.exec(
      "CREATE TABLE IF NOT EXISTS schema_version (component TEXT PRIMARY KEY, version INTEGER NOT NULL)",
    );
    const known = runner.get("SELECT version FROM schema_version WHERE component = ?", component);
    const version = Number(known?.version ?? 0);
    if (version > steps.length) {
      throw new Error(
        `the tables of ${component} were made by a newer genmesh (version ${version}, known: ${steps.length})`,
      );
    }
    for (const step of steps.slice(version)) db.exec(step);
    runner.run("INSERT OR REPLACE INTO schema_version VALUES (?, ?)", component, steps.length);
    db.exec("COMMIT");
  } catch (error) {
    db.exec("ROLLBACK");
    throw error;
  }
}
