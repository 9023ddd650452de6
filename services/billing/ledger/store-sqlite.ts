// Joins the parts of SQLite's ledger to the store that billing uses. `store-mongo.ts` is the other one.

import type { SqliteDatabase } from "#kit/store/sqlite.ts";
import type { SqlTransaction } from "#kit/store/sqlite-transaction.ts";
import { type Fold, fold } from "./ledger.ts";
import type { Operation, Outcome } from "./operations.ts";
import type { LedgerStore } from "./store.ts";
import { readDueHolds, readEntries, readHolds, readOldestHold } from "./store-sqlite-pages.ts";
import { readKey, readWallet } from "./store-sqlite-rows.ts";
import { ledgerSchema } from "./store-sqlite-schema.ts";
import { readSnapshots } from "./store-sqlite-snapshots.ts";
import { WalletImages } from "./store-sqlite-wallets.ts";
import { emptyWallet, type WalletRef } from "./wallet.ts";

/**
 * The ledger in the process's SQLite file. A transition of one wallet is one transaction, in which each entry is one insert among the
 * newest entries. Transactions of the same moment are committed together. From time to time, and before anything is read, the newest
 * entries move to the journal, and the rows of wallets, keys and holds are brought up to them. `rules` is the transition function. Tests insert faults there.
 */
export function createSqliteLedger(db: SqliteDatabase, rules: Fold = fold): LedgerStore {
  const images = new WalletImages();
  const applyAll = (
    tx: SqlTransaction,
    wallet: WalletRef,
    operations: readonly Operation[],
    now: number,
  ): Outcome[] => {
    const image = images.of(tx, wallet);
    const outcomes: Outcome[] = [];
    let added = 0;
    for (const operation of operations) {
      const { outcome, change } = rules(image, operation, now);
      outcomes.push(outcome);
      if (!change) continue;
      image.change(change);
      added++;
    }
    images.added(tx, added);
    return outcomes;
  };
  const settle = async () => {
    if (images.canMove(db)) await db.write((tx) => images.move(tx));
  };
  const read = async <T>(work: () => T): Promise<T> => {
    await settle();
    return work();
  };
  return {
    async open() {
      db.migrate("ledger", ledgerSchema);
      await settle();
    },
    apply: (wallet, operations, now) => db.write((tx) => applyAll(tx, wallet, operations, now)),
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
    async *snapshots(accountId) {
      await settle();
      yield* readSnapshots(db, accountId);
    },
  };
}
