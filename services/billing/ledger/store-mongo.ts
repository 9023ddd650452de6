// Joins the parts of MongoDB's ledger to the store that billing uses. `store-sqlite.ts` is the other one.

import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { migrate } from "#kit/store/mongo/migrate.ts";
import { maxTransitionOperations } from "../base/limits.ts";
import { createBatches } from "./batches.ts";
import { type Fold, fold } from "./ledger.ts";
import type { Outcome } from "./operations.ts";
import type { LedgerStore } from "./store.ts";
import { keysOf, walletOf } from "./store-mongo-docs.ts";
import { readDueHolds, readEntries, readHolds, readOldestHold } from "./store-mongo-pages.ts";
import {
  type JournalDocument,
  ledgerCollections,
  ledgerMongoSchema,
  type WalletDocument,
} from "./store-mongo-schema.ts";
import { readSnapshots } from "./store-mongo-snapshots.ts";
import { createTransition } from "./store-mongo-transition.ts";
import { emptyWallet, type WalletRef, walletName } from "./wallet.ts";

/** Options of a ledger. */
export interface MongoLedgerOptions {
  /** The transition function. Tests insert faults there. */
  rules?: Fold;
  /** Called with each wallet whose transition lost to another process. */
  onConflict?: (wallet: WalletRef) => void;
}

/**
 * The ledger in MongoDB (docs/money.md). A batch of one wallet is one compare-and-set of one document. The document carries its last
 * entries until they are in the journal. All reads look into both, the wallet first.
 */
export function createMongoLedger(
  db: MongoDatabase,
  { rules = fold, onConflict = () => undefined }: MongoLedgerOptions = {},
): LedgerStore {
  const wallets = db.collection<WalletDocument>(ledgerCollections.wallets);
  const journal = db.collection<JournalDocument>(ledgerCollections.journal);
  const transition = createTransition(db, { rules, onConflict });
  const batches = createBatches(async (wallet, take) => {
    const operations = take();
    const outcomes: Outcome[] = [];
    for (let from = 0; from < operations.length; from += maxTransitionOperations) {
      const some = operations.slice(from, from + maxTransitionOperations);
      outcomes.push(...(await transition(wallet, some)));
    }
    return outcomes;
  });
  return {
    open: () => migrate(db, [ledgerMongoSchema]),
    apply: (wallet, operations, now) => batches.add(wallet, operations, now),
    wallet: (ref) =>
      db.attempt(async () => {
        const doc = await wallets.findOne({ _id: walletName(ref) }, figuresOnly);
        return doc ? walletOf(doc) : emptyWallet(ref);
      }),
    dueHolds: (query) => db.attempt(() => readDueHolds(wallets, query)),
    holds: (query) => db.attempt(() => readHolds(wallets, query)),
    oldestHold: () => db.attempt(() => readOldestHold(wallets)),
    keyCounters: (ref, keyIds) =>
      db.attempt(async () => {
        const keys = Object.fromEntries(keyIds.map((keyId) => [`keys.${keyId}`, 1]));
        const projection = { _id: 1, ...keys };
        const doc = await wallets.findOne({ _id: walletName(ref) }, { projection });
        return keysOf(doc?.keys);
      }),
    entries: (wallet, query) => db.attempt(() => readEntries(wallets, journal, wallet, query)),
    snapshots: (accountId) => readSnapshots(db, accountId),
  };
}

const figuresOnly = { projection: { keys: 0, holds: 0, tail: 0 } } as const;
