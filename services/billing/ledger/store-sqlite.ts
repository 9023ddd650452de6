import type { SqliteDatabase } from "#kit/store/sqlite.ts";
import { mapErrors } from "#kit/store/sqlite-errors.ts";
import type { SqlTransaction } from "#kit/store/sqlite-transaction.ts";
import { maxEntriesSince } from "../base/limits.ts";
import { createBatches, type TimedOperation } from "./batches.ts";
import { type Fold, fold, type LedgerView } from "./ledger.ts";
import type { Outcome } from "./operations.ts";
import type { LedgerStore } from "./store.ts";
import { readDueHolds, readEntries, readHolds, readOldestHold } from "./store-sqlite-pages.ts";
import { readEntriesAfter, readEntry, readKey, readWallet } from "./store-sqlite-rows.ts";
import { ledgerSchema } from "./store-sqlite-schema.ts";
import { readSnapshots } from "./store-sqlite-snapshots.ts";
import { createWalletImages, type WalletImage } from "./store-sqlite-wallets.ts";
import { emptyWallet } from "./wallet.ts";

/**
 * The ledger in the process's SQLite file. A batch of one wallet is one transaction. Each entry is one insert, each hold one row, and
 * the wallet's own rows are written once a commit. `rules` is the transition function. Tests insert faults there.
 */
export function createSqliteLedger(db: SqliteDatabase, rules: Fold = fold): LedgerStore {
  const images = createWalletImages();
  const batches = createBatches((wallet, take) => {
    // Taken once, though the transaction may run again.
    let operations: readonly TimedOperation[] | undefined;
    return db.write((tx) =>
      mapErrors(() => {
        operations ??= take();
        return applyBatch(tx, rules, images.of(tx, wallet), operations);
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
    oldestHold: () => read(() => readOldestHold(db)),
    keyCounters: (wallet, keyIds) =>
      read(() => {
        const found = readWallet(db, wallet);
        if (!found) return [];
        return keyIds.map((id) => readKey(db, found.id, id)).filter((key) => key !== undefined);
      }),
    entries: (wallet, query) => read(() => readEntries(db, wallet, query)),
    snapshots: (accountId) => readSnapshots(db, accountId),
  };
}

function applyBatch(
  tx: SqlTransaction,
  rules: Fold,
  image: WalletImage,
  operations: readonly TimedOperation[],
): Outcome[] {
  const view: LedgerView = {
    wallet: image.wallet,
    hold: (holdId) => image.hold(tx, holdId),
    key: (keyId) => image.key(tx, keyId),
    recorded: (operationId) => readEntry(tx, image.id, operationId),
    entriesAfter: (number) => readEntriesAfter(tx, image.id, number, maxEntriesSince),
  };
  return operations.map(({ operation, now }) => {
    const { outcome, change } = rules(view, operation, now);
    if (change) {
      image.change(tx, change);
      view.wallet = change.wallet;
    }
    return outcome;
  });
}
