import { ErrorReason, RefusalError } from "./errors.ts";
import type { SqlRunner } from "./sqlite.ts";

/** How a transaction is committed. */
export interface WriteOptions {
  /** Waits, up to 20 ms, for another transaction to share its commit with: for work that nobody waits for. */
  lazy?: boolean;
}

/** What committing needs of a connection. */
export interface CommitConnection {
  prepare(sql: string): { run(): unknown };
  exec(sql: string): void;
  readonly isTransaction: boolean;
}

/** Transactions in one commit: bounds the time for which the event loop stands still. */
const maxBatch = 256;
/**
 * Milliseconds for which a commit waits while every turn of the event loop brings another transaction: what it costs
 * hardly depends on how many it takes along. A lone one waits a turn.
 */
const maxGatherMs = 2;
/** Milliseconds for which a lazy transaction waits for company. */
const maxLazyMs = 20;
interface Pending {
  work: (tx: SqlRunner) => unknown;
  resolve: (value: never) => void;
  reject: (error: unknown) => void;
}

/** Transactions that wait for their commit, and when it comes. */
export function createQueue(commitTogether: (batch: readonly Pending[]) => void) {
  let pending: Pending[] = [];
  let scheduled = false;
  let lazyTimer: NodeJS.Timeout | undefined;
  let gatherUntil = 0;
  /** How many waited a turn ago. */
  let gathered = 0;

  const commit = () => {
    gathered = 0;
    const batch = pending.slice(0, maxBatch);
    pending = pending.slice(maxBatch);
    if (pending.length > 0) schedule();
    commitTogether(batch);
  };
  const flush = () => {
    scheduled = false;
    const isGrowing = pending.length > gathered && pending.length < maxBatch;
    if (isGrowing && performance.now() < gatherUntil) {
      gathered = pending.length;
      schedule();
    } else if (pending.length > 0) commit();
  };
  const schedule = () => {
    if (scheduled) return;
    clearTimeout(lazyTimer);
    lazyTimer = undefined;
    scheduled = true;
    gatherUntil = gathered === 0 ? performance.now() + maxGatherMs : gatherUntil;
    setImmediate(flush);
  };
  return {
    add<T>(work: (tx: SqlRunner) => T, options?: WriteOptions): Promise<T> {
      return new Promise<T>((resolve, reject) => {
        pending.push({ work, resolve: resolve as (value: never) => void, reject });
        if (!options?.lazy) schedule();
        else if (!scheduled) lazyTimer ??= setTimeout(schedule, maxLazyMs);
      });
    },
    finish() {
      clearTimeout(lazyTimer);
      while (pending.length > 0) commit();
    },
  };
}

/**
 * Commits many transactions as one. They run one after the other without a savepoint each, which would cost as much as
 * a short transaction: one that throws after it changed something takes the others back with it, and they run again
 * without it.
 */
export function committer(
  db: CommitConnection,
  runner: SqlRunner,
): (batch: readonly Pending[]) => void {
  const begin = db.prepare("BEGIN IMMEDIATE");
  const commit = db.prepare("COMMIT");
  const { tx, hasChanged } = watched(runner);

  /** What they came to, or the one that failed after it changed something. One that failed before is rejected. */
  const runAll = (batch: readonly Pending[]): Done[] | Pending => {
    const done: Done[] = [];
    for (const pending of batch) {
      try {
        done.push({ pending, value: pending.work(tx) });
        hasChanged();
      } catch (error) {
        // A full disk ends the transaction by itself, and with it everything in it.
        if (!db.isTransaction) throw error;
        pending.reject(error);
        if (hasChanged()) return pending;
      }
    }
    return done;
  };
  const commitAll = (batch: readonly Pending[]): readonly Done[] => {
    let rest = batch;
    while (rest.length > 0) {
      begin.run();
      const outcome = runAll(rest);
      if (Array.isArray(outcome)) {
        commit.run();
        return outcome;
      }
      db.exec("ROLLBACK");
      rest = rest.filter((one) => one !== outcome);
    }
    return [];
  };
  return (batch) => {
    let done: readonly Done[];
    try {
      done = commitAll(batch);
    } catch (error) {
      hasChanged();
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

/** A runner that knows whether anything was changed through it since it was last asked. */
function watched(runner: SqlRunner): { tx: SqlRunner; hasChanged(): boolean } {
  let changed = false;
  const note = (sql: string) => {
    if (!sql.startsWith("SELECT")) changed = true;
  };
  return {
    tx: {
      all(sql, ...values) {
        note(sql);
        return runner.all(sql, ...values);
      },
      get(sql, ...values) {
        note(sql);
        return runner.get(sql, ...values);
      },
      run(sql, ...values) {
        const changes = runner.run(sql, ...values);
        if (changes > 0) changed = true;
        return changes;
      },
    },
    hasChanged() {
      const was = changed;
      changed = false;
      return was;
    },
  };
}
