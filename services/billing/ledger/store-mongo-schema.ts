// Declares the collections, documents and indexes of the ledger in MongoDB, and the indexes of usage, which is migrated with it.

import { indexStep, type MongoSchema } from "#kit/store/mongo/migrate.ts";
import type { EntryKind, HoldKind } from "./wallet.ts";

/** Collections of the ledger. */
export const ledgerCollections = { wallets: "ledger_wallet", journal: "ledger_journal" } as const;

/** A wallet. Everything that one change may touch is in this one document. */
export interface WalletDocument {
  /** `<account>/<unit>`. */
  _id: string;
  /** Rises with every change, except when copied entries are removed from the tail. Compare-and-set compares it. */
  v: number;
  granted: bigint;
  free: bigint;
  held: bigint;
  spent: bigint;
  month: MonthDocument;
  openHolds: number;
  /** Number, time and hash of the last entry. */
  n: number;
  at: number;
  h: string;
  keys: Record<string, KeyDocument>;
  holds: Record<string, HoldDocument>;
  /** Earliest check time of the open holds. Absent without any. */
  dueAt?: number;
  /** The last entries, at most 256. Some of them may be in the journal already. */
  tail: TailDocument[];
}

export interface MonthDocument {
  ym: string;
  spent: bigint;
  /** The month before. Absent where there was none, or where an older version wrote this. */
  last?: { ym: string; spent: bigint };
}

export interface KeyDocument extends MonthDocument {
  held: bigint;
  /** All three are absent where an older version wrote this. */
  day?: PeriodDocument;
  week?: PeriodDocument;
  ever?: bigint;
}

export interface PeriodDocument {
  p: string;
  spent: bigint;
  /** The same as in {@link MonthDocument}. */
  last?: { p: string; spent: bigint };
}

export interface HoldDocument {
  amount: bigint;
  kind: HoldKind;
  keyId: string;
  ref: string;
  openedAt: number;
  checkAt: number;
  extensions: number;
}

/** An entry without its operation id. */
export interface EntryDocument {
  n: number;
  kind: EntryKind;
  holdKind: HoldKind | "";
  keyId: string;
  amount: bigint;
  dFree: bigint;
  dHeld: bigint;
  dSpent: bigint;
  ref: string;
  at: number;
  checkAt: number;
  h: string;
}

/** An entry in a wallet's tail. */
export interface TailDocument extends EntryDocument {
  op: string;
}

/** An entry in the journal. */
export interface JournalDocument extends EntryDocument {
  /** `<wallet>:<operation id>`: an operation has one entry, and the entries of a hold are next to each other. */
  _id: string;
  wallet: string;
}

const indexes: MongoSchema["indexes"] = {
  [ledgerCollections.wallets]: [
    // Only wallets with open holds are in this index.
    { name: "due", key: { dueAt: 1, _id: 1 }, partial: { dueAt: { $exists: true } } },
  ],
  [ledgerCollections.journal]: [{ name: "number", key: { wallet: 1, n: 1 }, unique: true }],
};

/** Collections of usage. */
export const usageCollections = {
  cursors: "ledger_usage_cursor",
  rows: "ledger_usage",
  served: "ledger_served",
  lines: "ledger_line",
  totals: "ledger_key_total",
} as const;

/** Indexes for the queries of usage. */
export const usageMongoIndexes: MongoSchema["indexes"] = {
  [usageCollections.rows]: [
    { name: "hour", key: { account: 1, hour: 1 } },
    { name: "key", key: { account: 1, keyId: 1, hour: 1 } },
    { name: "wallet", key: { wallet: 1, _id: 1 } },
  ],
  [usageCollections.served]: [
    { name: "hour", key: { account: 1, hour: 1 } },
    { name: "key", key: { account: 1, keyId: 1, hour: 1 } },
    { name: "wallet", key: { wallet: 1, _id: 1 } },
    { name: "all", key: { hour: 1 } },
  ],
  [usageCollections.lines]: [
    { name: "all", key: { account: 1, place: 1 } },
    { name: "key", key: { account: 1, keyId: 1, place: 1 } },
    { name: "model", key: { account: 1, model: 1, place: 1 } },
    {
      name: "status",
      key: { account: 1, unusualStatus: 1, place: 1 },
      partial: { unusualStatus: { $exists: true } },
    },
    {
      name: "kind",
      key: { account: 1, unusualKind: 1, place: 1 },
      partial: { unusualKind: { $exists: true } },
    },
    // Of all accounts, for operators. Ids are found without an account by the same indexes as with one.
    { name: "shared", key: { place: 1, account: 1 } },
    {
      name: "shared_status",
      key: { unusualStatus: 1, place: 1, account: 1 },
      partial: { unusualStatus: { $exists: true } },
    },
    {
      name: "shared_kind",
      key: { unusualKind: 1, place: 1, account: 1 },
      partial: { unusualKind: { $exists: true } },
    },
    {
      name: "by_public",
      key: { publicId: 1, account: 1, place: 1 },
      partial: { publicId: { $exists: true } },
    },
    {
      name: "by_request",
      key: { requestId: 1, account: 1, place: 1 },
      partial: { requestId: { $exists: true } },
    },
  ],
};

/** The collections of the ledger and of usage in MongoDB. They are one component, because they were made together. */
export const ledgerMongoSchema: MongoSchema = {
  component: "ledger",
  indexes: { ...indexes, ...usageMongoIndexes },
  steps: [indexStep(indexes)],
};
