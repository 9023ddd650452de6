// Lets transactions of one process share a commit in SQLite, which costs more than the transaction itself. `sqlite.ts` opens the
// file and queues them here.

import { createBatchWait } from "#kit/base/batching.ts";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import type { SqlRow, SqlRunner } from "./sqlite.ts";
import { meantBy } from "./sqlite-errors.ts";

/** Statements of one transaction, and the functions that belong to it. */
export interface SqlTransaction extends SqlRunner {
  /** Changes when another connection has changed the file. Then cached values of the file are no longer valid. */
  readonly othersVersion: SqlRow[string] | undefined;
  /** Calls `forget` where the transaction is undone, alone or with others. The transaction may run again after that. */
  onUndo(forget: () => void): void;
}

/** The parts of a connection that committing needs. */
interface CommitConnection {
  prepare(sql: string): { run(): unknown };
  exec(sql: string): void;
  readonly isOpen: boolean;
  readonly isTransaction: boolean;
}

/** A transaction that waits for its turn. */
interface Pending {
  work: (tx: SqlTransaction) => unknown;
  /** The result of `work`, once it ran. */
  value?: unknown;
  resolve: (value: never) => void;
  reject: (error: unknown) => void;
}

/**
 * The commits of one connection. Many transactions are committed as one. They run one after the other without savepoints, each of which
 * would cost as much as a short transaction. A transaction that throws after it changed something undoes the others with it. They then
 * run again without it.
 */
export class Committing {
  readonly #db: CommitConnection;
  readonly #runner: SqlRunner;
  readonly #begin: { run(): unknown };
  readonly #commit: { run(): unknown };
  readonly #undos = new Set<() => void>();
  readonly #tx: { -readonly [Name in keyof SqlTransaction]: SqlTransaction[Name] };
  /** Has the transaction that runs changed something? */
  #hasChanged = false;

  constructor(db: CommitConnection, runner: SqlRunner) {
    this.#db = db;
    this.#runner = runner;
    this.#begin = db.prepare("BEGIN IMMEDIATE");
    this.#commit = db.prepare("COMMIT");
    this.#tx = {
      all: (sql, ...values) => {
        this.#hasChanged ||= !sql.startsWith("SELECT");
        return runner.all(sql, ...values);
      },
      get: (sql, ...values) => {
        this.#hasChanged ||= !sql.startsWith("SELECT");
        return runner.get(sql, ...values);
      },
      run: (sql, ...values) => {
        const changes = runner.run(sql, ...values);
        this.#hasChanged ||= changes > 0;
        return changes;
      },
      othersVersion: undefined,
      onUndo: (forget) => this.#undos.add(forget),
    };
  }

  /** Commits the transactions of a batch, and settles each. */
  run(batch: readonly Pending[]): void {
    let rest = batch;
    try {
      while (rest.length > 0) {
        this.#begin.run();
        this.#tx.othersVersion = this.#runner.get("PRAGMA data_version")?.data_version;
        const failed = this.#runAll(rest);
        if (!failed) {
          this.#commit.run();
          this.#undos.clear();
          break;
        }
        this.#undo();
        rest = rest.filter((one) => one !== failed);
      }
    } catch (error) {
      this.#undo();
      const refusal = new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, { cause: error });
      for (const one of batch) one.reject(refusal);
      return;
    }
    // Those that were rejected stay so.
    for (const { resolve, value } of rest) resolve(value as never);
  }

  /** Answers the transaction that failed after it changed something. One that fails before that is rejected, and the others go on. */
  #runAll(batch: readonly Pending[]): Pending | undefined {
    for (const pending of batch) {
      this.#hasChanged = false;
      try {
        pending.value = pending.work(this.#tx);
      } catch (error) {
        // A full disk ends the whole transaction by itself.
        if (!this.#db.isTransaction) throw error;
        pending.reject(meantBy(error));
        if (this.#hasChanged) return pending;
      }
    }
    return undefined;
  }

  #undo(): void {
    // A file that is closed has no transaction, and cannot be asked for one.
    if (this.#db.isOpen && this.#db.isTransaction) this.#db.exec("ROLLBACK");
    for (const forget of this.#undos) forget();
    this.#undos.clear();
  }
}

/** Options of a commit. */
export interface WriteOptions {
  /** Waits, up to 20 ms, for another transaction to share its commit with. It is for work that no caller waits for. */
  lazy?: boolean;
}

/** Transactions in one commit. This bounds the time for which the event loop is blocked. */
const maxBatch = 256;
/**
 * Milliseconds for which a commit waits while every turn of the event loop brings another transaction. The cost of a commit hardly
 * depends on their number. A lone transaction waits a turn, and none where those before were alone too.
 */
const maxGatherMs = 2;
/** Milliseconds for which a lazy transaction waits for others. */
const maxLazyMs = 20;

/** Holds transactions that wait for their commit, and decides when it comes. */
export function createQueue(committing: Committing) {
  const batchWait = createBatchWait();
  let pending: Pending[] = [];
  let scheduled = false;
  let lazyTimer: NodeJS.Timeout | undefined;
  let gatherUntil = 0;
  /** How many waited a turn ago. */
  let gathered = 0;
  /** How many of the pending transactions have a caller that waits. */
  let awaited = 0;

  const commit = () => {
    gathered = 0;
    batchWait.ended(awaited);
    awaited = 0;
    const batch = pending.length > maxBatch ? pending.slice(0, maxBatch) : pending;
    pending = pending.length > maxBatch ? pending.slice(maxBatch) : [];
    if (pending.length > 0) scheduleTurn();
    committing.run(batch);
  };
  const flush = () => {
    scheduled = false;
    const isGrowing = pending.length > gathered && pending.length < maxBatch;
    if (isGrowing && performance.now() < gatherUntil) {
      gathered = pending.length;
      scheduleTurn();
    } else if (pending.length > 0) commit();
  };
  const begin = () => {
    clearTimeout(lazyTimer);
    lazyTimer = undefined;
    scheduled = true;
  };
  const scheduleTurn = () => {
    if (scheduled) return;
    begin();
    if (gathered === 0) gatherUntil = performance.now() + maxGatherMs;
    setImmediate(flush);
  };
  const schedule = () => {
    // Transactions that are added in this turn are included either way.
    if (batchWait.isWorthwhile()) return scheduleTurn();
    begin();
    gatherUntil = 0;
    queueMicrotask(flush);
  };
  return {
    add<T>(work: (tx: SqlTransaction) => T, options?: WriteOptions): Promise<T> {
      return new Promise<T>((resolve, reject) => {
        pending.push({ work, resolve: resolve as (value: never) => void, reject });
        if (!options?.lazy) {
          awaited++;
          if (!scheduled) schedule();
        } else if (!scheduled) lazyTimer ??= setTimeout(scheduleTurn, maxLazyMs);
      });
    },
    finish() {
      clearTimeout(lazyTimer);
      while (pending.length > 0) commit();
    },
  };
}
