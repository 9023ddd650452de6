// Decides what an operation does to an account's quota. It is pure. Both databases' stores call it, so that they agree.

import { hasRoom, type QuotaStore, type QuotaUsage } from "./quota.ts";

/** A change of a charge of quota. */
export interface ChargeEntry {
  /** Its place among the changes of its account. Of two entries of a charge the higher one is true. */
  n: number;
  chargeId: string;
  state: "reserved" | "used" | "kept" | "released";
  /** The bytes that the charge takes, or took. */
  bytes: number;
  /** Milliseconds since the epoch. */
  releasedAt?: number;
}

/** A change of one charge. See {@link QuotaStore}. */
export type QuotaOperation =
  | { kind: "reserve"; chargeId: string; bytes: number; limitBytes: number }
  | { kind: "commit"; chargeId: string }
  | { kind: "keep"; chargeId: string; now: number }
  | { kind: "release"; chargeId: string; now: number };

/** The state of the charge after the operation. `full` and `none`: it does not exist. */
export type QuotaOutcome = ChargeEntry["state"] | "full" | "none";

/** A wallet after some operations. */
export interface QuotaDraft {
  sums: QuotaUsage;
  /** New changes, in their order. */
  entries: ChargeEntry[];
  /** One for each operation. */
  outcomes: QuotaOutcome[];
}

/** The transitions of a quota, by what carries out an operation on an account's wallet. */
export function transitionsBy(
  carryOut: (accountId: string, operation: QuotaOperation) => Promise<QuotaOutcome>,
): Pick<QuotaStore, "reserve" | "commit" | "keep" | "release"> {
  return {
    async reserve({ accountId, chargeId }, bytes, limitBytes) {
      const outcome = await carryOut(accountId, { kind: "reserve", chargeId, bytes, limitBytes });
      return outcome === "full" || outcome === "released" ? outcome : "reserved";
    },
    commit: async ({ accountId, chargeId }) =>
      (await carryOut(accountId, { kind: "commit", chargeId })) === "used",
    async keep({ accountId, chargeId }, now) {
      await carryOut(accountId, { kind: "keep", chargeId, now });
    },
    async release({ accountId, chargeId }, now) {
      await carryOut(accountId, { kind: "release", chargeId, now });
    },
  };
}

/** Applies operations one after the other. `known`: the present state of their charges. Throws where the wallet breaks its law. */
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

/** The next state of a charge, or its present one where nothing changes. */
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
    // A replica of an earlier version writes the wallet without this sum. Bytes that it dropped cannot be subtracted again.
    keptBytes: Math.max(0, sums.keptBytes + taken("kept")),
  };
}

function mustBeLawful(sums: QuotaUsage): void {
  const isLawful = Object.values(sums).every((one) => Number.isSafeInteger(one) && one >= 0);
  if (!isLawful) throw new Error("a quota breaks its law: its sums are not those of its charges");
}
