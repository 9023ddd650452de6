import { indexStep, type MongoSchema } from "#kit/store/mongo/migrate.ts";
import { hasRoom, type QuotaUsage } from "./quota.ts";

/** Collections of the quota. */
export const quotaCollections = { wallets: "media_quota", charges: "media_quota_charge" } as const;

/** What became of a charge. */
export interface ChargeEntry {
  /** Its place among the changes of its account: of two entries of a charge the higher is true. */
  n: number;
  chargeId: string;
  state: "reserved" | "used" | "kept" | "released";
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
  /** Absent in what an earlier version wrote: none. */
  keptBytes?: number;
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

/** A change of one charge; see {@link QuotaStore}. */
export type QuotaOperation =
  | { kind: "reserve"; chargeId: string; bytes: number; limitBytes: number }
  | { kind: "commit"; chargeId: string }
  | { kind: "keep"; chargeId: string; now: number }
  | { kind: "release"; chargeId: string; now: number };

/** How the charge stands then; `full` and `none`: it is not there. */
export type QuotaOutcome = ChargeEntry["state"] | "full" | "none";

/** What some operations make of a wallet. */
export interface QuotaDraft {
  sums: QuotaUsage;
  /** New changes, in their order. */
  entries: ChargeEntry[];
  /** One for each operation. */
  outcomes: QuotaOutcome[];
}

/**
 * Applies operations one after the other. `known`: the charges that they are about, as they stand. Throws where the wallet
 * breaks its law.
 */
export function draftOf(
  wallet: QuotaUsage & { n: number },
  known: ReadonlyMap<string, ChargeEntry>,
  operations: readonly QuotaOperation[],
): QuotaDraft {
  const charges = new Map(known);
  const entries: ChargeEntry[] = [];
  const { usedBytes, reservedBytes, keptBytes } = wallet;
  let sums: QuotaUsage = { usedBytes, reservedBytes, keptBytes };
  mustBeLawful(sums);
  const outcomes = operations.map((operation): QuotaOutcome => {
    const before = charges.get(operation.chargeId);
    const next = nextOf(sums, before, operation);
    if (typeof next === "string") return next;
    const entry = { n: wallet.n + entries.length + 1, chargeId: operation.chargeId, ...next };
    sums = moved(sums, before, entry);
    mustBeLawful(sums);
    charges.set(entry.chargeId, entry);
    entries.push(entry);
    return entry.state;
  });
  return { sums, entries, outcomes };
}

/** What a charge becomes, or how it stands where nothing changes. */
function nextOf(
  sums: QuotaUsage,
  charge: ChargeEntry | undefined,
  operation: QuotaOperation,
): Omit<ChargeEntry, "n" | "chargeId"> | QuotaOutcome {
  switch (operation.kind) {
    case "reserve": {
      const { bytes, limitBytes } = operation;
      if (charge) return isGivenUp(charge) ? "released" : "reserved";
      if (!hasRoom(sums, bytes, limitBytes)) return "full";
      return { state: "reserved", bytes };
    }
    case "commit":
      if (charge?.state !== "reserved") return charge?.state ?? "none";
      return { state: "used", bytes: charge.bytes };
    case "keep":
      if (!charge) return { state: "released", bytes: 0, releasedAt: operation.now };
      return isGivenUp(charge) ? charge.state : { state: "kept", bytes: charge.bytes };
    case "release":
      if (charge?.state === "released") return "released";
      return { state: "released", bytes: charge?.bytes ?? 0, releasedAt: operation.now };
  }
}

function isGivenUp({ state }: ChargeEntry): boolean {
  return state === "kept" || state === "released";
}

function moved(sums: QuotaUsage, before: ChargeEntry | undefined, after: ChargeEntry): QuotaUsage {
  const taken = (state: ChargeEntry["state"]) =>
    (after.state === state ? after.bytes : 0) - (before?.state === state ? before.bytes : 0);
  return {
    usedBytes: sums.usedBytes + taken("used"),
    reservedBytes: sums.reservedBytes + taken("reserved"),
    // A replica of an earlier version writes the wallet without this sum: what it forgot cannot be taken off again.
    keptBytes: Math.max(0, sums.keptBytes + taken("kept")),
  };
}

function mustBeLawful(sums: QuotaUsage): void {
  const isLawful = Object.values(sums).every((one) => Number.isSafeInteger(one) && one >= 0);
  if (!isLawful) throw new Error("a quota breaks its law: its sums are not those of its charges");
}
