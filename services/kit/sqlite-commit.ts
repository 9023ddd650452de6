import { createCompany } from "./company.ts";
import type { Pending, SqlTransaction } from "./sqlite-transaction.ts";

/** How a transaction is committed. */
export interface WriteOptions {
  /** Waits, up to 20 ms, for another transaction to share its commit with: for work that nobody waits for. */
  lazy?: boolean;
}

/** Transactions in one commit: bounds the time for which the event loop stands still. */
const maxBatch = 256;
/**
 * Milliseconds for which a commit waits while every turn of the event loop brings another transaction: what it costs
 * hardly depends on how many it takes along. A lone one waits a turn, and none where those before were alone too.
 */
const maxGatherMs = 2;
/** Milliseconds for which a lazy transaction waits for company. */
const maxLazyMs = 20;

/** Transactions that wait for their commit, and when it comes. */
export function createQueue(commitTogether: (batch: readonly Pending[]) => void) {
  const company = createCompany();
  let pending: Pending[] = [];
  let scheduled = false;
  let lazyTimer: NodeJS.Timeout | undefined;
  let gatherUntil = 0;
  /** How many waited a turn ago. */
  let gathered = 0;
  /** How many of those that wait somebody waits for. */
  let awaited = 0;

  const commit = () => {
    gathered = 0;
    company.met(awaited);
    awaited = 0;
    const batch = pending.slice(0, maxBatch);
    pending = pending.slice(maxBatch);
    if (pending.length > 0) scheduleTurn();
    commitTogether(batch);
  };
  const flush = () => {
    scheduled = false;
    const isGrowing = pending.length > gathered && pending.length < maxBatch;
    if (isGrowing && performance.now() < gatherUntil) {
      gathered = pending.length;
      scheduleTurn();
    } else if (pending.length > 0) commit();
  };
  const commitNow = () => {
    scheduled = false;
    if (pending.length > 0) commit();
  };
  const begin = (schedule: () => void) => {
    if (scheduled) return;
    clearTimeout(lazyTimer);
    lazyTimer = undefined;
    scheduled = true;
    schedule();
  };
  const scheduleTurn = () =>
    begin(() => {
      if (gathered === 0) gatherUntil = performance.now() + maxGatherMs;
      setImmediate(flush);
    });
  const schedule = () => {
    // All that this turn's callbacks add goes along either way.
    if (company.isExpected()) scheduleTurn();
    else begin(() => queueMicrotask(commitNow));
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
