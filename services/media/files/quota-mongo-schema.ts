import { indexStep, type MongoSchema } from "#kit/mongo/migrate.ts";

/** Collections of the quota. */
export const quotaCollections = { wallets: "media_quota", charges: "media_quota_charge" } as const;

/** What became of a charge. */
export interface ChargeEntry {
  /** Its place among the changes of its account: of two entries of a charge the higher is true. */
  n: number;
  chargeId: string;
  state: "reserved" | "used" | "released";
  /** That it takes, or took. */
  bytes: number;
  /** Ms since the epoch. */
  releasedAt?: number;
}

/**
 * The wallet of an account: a version for compare-and-set, its sums, and its last changes. What is not in the tail is in the
 * charges' own documents.
 */
export interface WalletDocument {
  /** The account id. */
  _id: string;
  /** Number of the last change: each change is one above the one before. */
  n: number;
  usedBytes: number;
  reservedBytes: number;
  /** All changes above some number, in their order. */
  tail: ChargeEntry[];
  /** Of the longest released charge in the tail; absent: there is none. */
  releasedAt?: number;
}

/** A charge as one of its account's tails had it. */
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

/** What the quota keeps in MongoDB. */
export const quotaMongoSchema: MongoSchema = {
  component: "media_quota",
  indexes,
  steps: [indexStep(indexes)],
};

/** Under what a charge lies: no account's id has a colon. */
export function chargeName(accountId: string, chargeId: string): string {
  return `${accountId}:${chargeId}`;
}
