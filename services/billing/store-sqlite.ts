import type { SqliteDatabase, SqlRunner } from "#kit/sqlite.ts";
import { createBatches, type TimedOperation } from "./batches.ts";
import { mapErrors } from "./errors-sqlite.ts";
import { type Change, type Fold, fold } from "./ledger.ts";
import type { Outcome } from "./operations.ts";
import { readDueHolds, readEntries, readHolds } from "./pages-sqlite.ts";
import {
  deleteHold,
  insertEntry,
  insertHold,
  insertWallet,
  readEntry,
  readHold,
  readKey,
  readWallet,
  updateHold,
  updateWallet,
  type WalletId,
  writeKey,
} from "./rows-sqlite.ts";
import { ledgerSchema } from "./schema-sqlite.ts";
import { readSnapshots } from "./snapshots-sqlite.ts";
import type { LedgerStore } from "./store.ts";
import { emptyWallet, type KeyCounter, type WalletRef } from "./wallet.ts";

/**
 * The ledger in the process's SQLite file. A batch of one wallet is one transaction: its wallet is read and written
 * once, each entry is one insert, each hold one row. `rules` is the transition function; tests seed faults there.
 */
export function createSqliteLedger(db: SqliteDatabase, rules: Fold = fold): LedgerStore {
  const batches = createBatches((wallet, take) => {
    // Taken once, though the transaction may run again.
    let operations: readonly TimedOperation[] | undefined;
    return db.write((tx) =>
      mapErrors(() => {
        operations ??= take();
        return applyBatch(tx, rules, wallet, operations);
      }),
    );
  });
  const read = async <T>(work: () => T): Promise<T> => mapErrors(work);
  return {
    open: () => read(() => db.migrate("ledger", ledgerSchema)),
    apply: (wallet, operations, now) => batches.add(wallet, operations, now),
    wallet: (wallet) => read(() => readWallet(db, wallet)?.wallet ?? emptyWallet(wallet)),
    dueHolds: (query) => read(() => readDueHolds(db, query)),
    holds: (query) => read(() => readHolds(db, query)),
    entries: (wallet, query) => read(() => readEntries(db, wallet, query)),
    snapshots: (accountId) => readSnapshots(db, accountId),
  };
}

function applyBatch(
  tx: SqlRunner,
  rules: Fold,
  ref: WalletRef,
  operations: readonly TimedOperation[],
): Outcome[] {
  const stored = readWallet(tx, ref);
  const before = stored?.wallet ?? emptyWallet(ref);
  // A wallet gets its row with its first entry; until then there is nothing to be found of it.
  let id = stored?.id ?? noWallet;
  const keys = new Map<string, KeyCounter | undefined>();
  const changedKeys = new Map<string, KeyCounter>();
  const view = {
    wallet: before,
    hold: (holdId: string) => readHold(tx, id, holdId),
    key: (keyId: string) => {
      if (!keys.has(keyId)) keys.set(keyId, readKey(tx, id, keyId));
      return keys.get(keyId);
    },
    recorded: (operationId: string) => readEntry(tx, id, operationId),
  };
  const outcomes = operations.map(({ operation, now }) => {
    const { outcome, change } = rules(view, operation, now);
    if (change) {
      if (id === noWallet) id = insertWallet(tx, ref);
      insertEntry(tx, id, change.entry);
      storeHold(tx, id, change);
      if (change.key) {
        keys.set(change.key.keyId, change.key);
        changedKeys.set(change.key.keyId, change.key);
      }
      view.wallet = change.wallet;
    }
    return outcome;
  });
  if (view.wallet !== before) updateWallet(tx, id, view.wallet);
  for (const counter of changedKeys.values()) writeKey(tx, id, counter);
  return outcomes;
}

/** The number of no wallet: SQLite's begin with 1. */
const noWallet = 0n;

function storeHold(tx: SqlRunner, id: WalletId, { entry, hold }: Change): void {
  if (entry.kind === "hold" && hold) insertHold(tx, id, hold);
  else if (entry.kind === "extend" && hold) updateHold(tx, id, hold);
  else if (entry.kind === "settle" || entry.kind === "release") deleteHold(tx, id, entry.holdId);
}
