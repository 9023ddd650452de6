import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { ErrorReason, RefusalError } from "./errors.ts";
import { noTelemetry, type Telemetry } from "./telemetry/port.ts";
import { traced } from "./telemetry/traced.ts";

export type SqlValue = SQLInputValue;
/** Integers come back as bigint, so that money never passes through a float. */
export type SqlRow = Record<string, string | bigint | number | Uint8Array | null>;

/** Statements inside a transaction, or outside for reads. Statements are prepared once and kept. */
export interface SqlRunner {
  all(sql: string, ...values: SqlValue[]): SqlRow[];
  get(sql: string, ...values: SqlValue[]): SqlRow | undefined;
  /** Runs a change; answers how many rows it touched. */
  run(sql: string, ...values: SqlValue[]): number;
}

/** One SQLite file, shared by the services of a process. */
export interface SqliteDatabase extends SqlRunner, Disposable {
  /**
   * Runs `work` as one transaction, durable against the death of this process when the promise resolves. Transactions
   * of one turn of the event loop share a commit; one that throws is undone alone. `work` must not await.
   */
  write<T>(work: (tx: SqlRunner) => T): Promise<T>;
  /** Brings `component`'s tables up to the last step, each step once, in order. */
  migrate(component: string, steps: readonly string[]): void;
}

/** Milliseconds that a statement waits for another process (the operator looking in with the sqlite3 shell). */
const busyTimeoutMs = 5_000;
/** Transactions in one commit: bounds the time for which the event loop stands still. */
const maxBatch = 256;

interface Pending {
  work: (tx: SqlRunner) => unknown;
  resolve: (value: never) => void;
  reject: (error: unknown) => void;
}

/**
 * Opens (and makes) a database file; ":memory:" for tests. Write-ahead log, `synchronous=NORMAL`: a killed process loses
 * nothing; after a power cut the file is whole, but may be a moment behind, all services together (one file, one log).
 */
export function openSqlite(
  file: string,
  { telemetry = noTelemetry }: { telemetry?: Telemetry } = {},
): SqliteDatabase {
  const db = new DatabaseSync(file, { readBigInts: true });
  db.exec(`PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA busy_timeout=${busyTimeoutMs};
    PRAGMA foreign_keys=ON; PRAGMA cache_size=-32000`);
  const runner = createRunner(db);
  const commitTogether = committer(db, runner);
  let pending: Pending[] = [];
  let scheduled = false;

  const flush = () => {
    scheduled = false;
    if (pending.length === 0) return;
    const batch = pending.slice(0, maxBatch);
    pending = pending.slice(maxBatch);
    if (pending.length > 0) schedule();
    commitTogether(batch);
  };
  const schedule = () => {
    if (scheduled) return;
    scheduled = true;
    setImmediate(flush);
  };
  const write = <T>(work: (tx: SqlRunner) => T): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      pending.push({ work, resolve: resolve as (value: never) => void, reject });
      schedule();
    });
  return {
    ...runner,
    write: (work) =>
      telemetry.isOn ? traced(telemetry, transactionSpan, () => write(work)) : write(work),
    migrate: (component, steps) => migrate(db, runner, component, steps),
    [Symbol.dispose]() {
      if (pending.length > 0) flush();
      db.close();
    },
  };
}

const transactionSpan = {
  family: "db.client",
  name: "transaction",
  attributes: { "db.system.name": "sqlite", "db.operation.name": "transaction" },
} as const;

/** Commits many transactions as one, with its statements prepared once. */
function committer(db: DatabaseSync, runner: SqlRunner): (batch: readonly Pending[]) => void {
  const [begin, commit, savepoint, release] = [
    "BEGIN IMMEDIATE",
    "COMMIT",
    "SAVEPOINT one",
    "RELEASE one",
  ].map((sql) => db.prepare(sql)) as [StatementSync, StatementSync, StatementSync, StatementSync];

  const run = (one: Pending): Done | undefined => {
    savepoint.run();
    try {
      const value = one.work(runner);
      release.run();
      return { pending: one, value };
    } catch (error) {
      db.exec("ROLLBACK TO one; RELEASE one");
      one.reject(error);
      return undefined;
    }
  };
  return (batch) => {
    const done: Done[] = [];
    try {
      begin.run();
      for (const one of batch) {
        const outcome = run(one);
        if (outcome) done.push(outcome);
      }
      commit.run();
    } catch (error) {
      if (db.isTransaction) db.exec("ROLLBACK");
      const refusal = new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, { cause: error });
      for (const one of batch) one.reject(refusal);
      return;
    }
    for (const { pending, value } of done) pending.resolve(value as never);
  };
}

interface Done {
  pending: Pending;
  value: unknown;
}

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
