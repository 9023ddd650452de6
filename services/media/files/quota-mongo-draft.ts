import type { QuotaUsage } from "./quota.ts";
import type { ChargeEntry } from "./quota-mongo-schema.ts";

/** A change of one charge; see {@link QuotaStore}. */
export type QuotaOperation =
  | { kind: "reserve"; chargeId: string; bytes: number; limitBytes: number }
  | { kind: "commit"; chargeId: string }
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
  let sums: QuotaUsage = { usedBytes: wallet.usedBytes, reservedBytes: wallet.reservedBytes };
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
  { usedBytes, reservedBytes }: QuotaUsage,
  charge: ChargeEntry | undefined,
  operation: QuotaOperation,
): Omit<ChargeEntry, "n" | "chargeId"> | QuotaOutcome {
  switch (operation.kind) {
    case "reserve": {
      const { bytes, limitBytes } = operation;
      if (charge) return charge.state === "released" ? "released" : "reserved";
      if (usedBytes + reservedBytes + bytes > limitBytes) return "full";
      return { state: "reserved", bytes };
    }
    case "commit":
      if (charge?.state !== "reserved") return charge?.state ?? "none";
      return { state: "used", bytes: charge.bytes };
    case "release":
      if (charge?.state === "released") return "released";
      return { state: "released", bytes: charge?.bytes ?? 0, releasedAt: operation.now };
  }
}

function moved(sums: QuotaUsage, before: ChargeEntry | undefined, after: ChargeEntry): QuotaUsage {
  const taken = (state: ChargeEntry["state"]) =>
    (after.state === state ? after.bytes : 0) - (before?.state === state ? before.bytes : 0);
  return {
    usedBytes: sums.usedBytes + taken("used"),
    reservedBytes: sums.reservedBytes + taken("reserved"),
  };
}

function mustBeLawful({ usedBytes, reservedBytes }: QuotaUsage): void {
  const isLawful = [usedBytes, reservedBytes].every((one) => Number.isSafeInteger(one) && one >= 0);
  if (!isLawful) throw new Error("a quota breaks its law: its sums are not those of its charges");
}
