// Declares the collections and documents of quotas in MongoDB. `quota-mongo.ts` reads and writes them.

import { indexStep, type MongoSchema } from "#kit/store/mongo/migrate.ts";
import type { ChargeEntry } from "./quota-rules.ts";

/** Collections of the quota. */
export const quotaCollections = { wallets: "media_quota", charges: "media_quota_charge" } as const;

/**
 * The quota of an account: a version for compare-and-set, its sums, and its last changes. Older changes are in the charges' own
 * documents.
 */
export interface WalletDocument {
  /** The account id. */
  _id: string;
  /** Number of the last change. Each change is one above the one before. */
  n: number;
  usedBytes: number;
  reservedBytes: number;
  /** Absent in a document of an earlier version: none. */
  keptBytes?: number;
  /** All changes above some number, in their order. */
  tail: ChargeEntry[];
  /** Time of the oldest released charge in the tail. Absent: there is none. */
  releasedAt?: number;
}

/** A charge, copied from the tail of its account. */
export interface ChargeDocument extends Omit<ChargeEntry, "chargeId"> {
  /** `<account>:<charge>` */
  _id: string;
}

const indexes: MongoSchema["indexes"] = Object.fromEntries(
  Object.values(quotaCollections).map((collection) => [
    collection,
    [{ name: "released", key: { releasedAt: 1 }, partial: { releasedAt: { $exists: true } } }],
  ]),
);

/** The quota's collections in MongoDB. */
export const quotaMongoSchema: MongoSchema = {
  component: "media_quota",
  indexes,
  steps: [indexStep(indexes)],
};

/** The id of a charge's document. No account's id has a colon. */
export function chargeName(accountId: string, chargeId: string): string {
  return `${accountId}:${chargeId}`;
}
