import type { SqliteDatabase } from "#kit/sqlite.ts";
import type { SqlTransaction } from "#kit/sqlite-transaction.ts";
import { createBatches, type TimedOperation } from "./batches.ts";
import { mapErrors } from "./errors-sqlite.ts";
import { createWalletImages, type WalletImage } from "./images-sqlite.ts";
import { type Fold, fold, type LedgerView } from "./ledger.ts";
import type { Outcome } from "./operations.ts";
import { readDueHolds, readEntries, readHolds, readOldestHold } from "./pages-sqlite.ts";
import { readEntry, readWallet } from "./rows-sqlite.ts";
import { ledgerSchema } from "./schema-sqlite.ts";
import { readSnapshots } from "./snapshots-sqlite.ts";
import type { LedgerStore } from "./store.ts";
import { emptyWallet } from "./wallet.ts";

/**
 * The ledger in the process's SQLite file. A batch of one wallet is one transaction; each entry is one insert, each hold one
 * row, and the wallet's own rows are written once a commit. `rules` is the transition function; tests seed faults there.
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
