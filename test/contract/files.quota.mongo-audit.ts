import type { Db } from "mongodb";
import type { QuotaUsage } from "../../services/media/files/quota.ts";
import {
  type ChargeDocument,
  quotaCollections,
  type WalletDocument,
} from "../../services/media/files/quota-mongo-wallet.ts";

/** An account's charges, added up again from all stored records. */
export interface QuotaAudit {
  /** The figures of the wallet. */
  told: QuotaUsage;
  /** The sum of its charges. */
  counted: QuotaUsage;
  /** Keyed by charge id. */
  states: Map<string, string>;
  /** Entries in the wallet's document. */
  tail: number;
}

/** Adds an account's charges up. It is called while no process writes. */
export async function auditQuota(db: Db, accountId: string): Promise<QuotaAudit> {
  const wallets = db.collection<WalletDocument>(quotaCollections.wallets);
  const wallet = await wallets.findOne({ _id: accountId });
  const charges = new Map<string, { state: string; bytes: number }>();
  for await (const doc of db.collection<ChargeDocument>(quotaCollections.charges).find()) {
    const [owner, chargeId = ""] = doc._id.split(":");
    if (owner === accountId) charges.set(chargeId, doc);
  }
  for (const entry of wallet?.tail ?? []) charges.set(entry.chargeId, entry);
  const sum = (state: string) =>
    [...charges.values()].reduce((all, one) => all + (one.state === state ? one.bytes : 0), 0);
  return {
    told: {
      usedBytes: wallet?.usedBytes ?? 0,
      reservedBytes: wallet?.reservedBytes ?? 0,
      keptBytes: wallet?.keptBytes ?? 0,
    },
    counted: {
      usedBytes: sum("used"),
      reservedBytes: sum("reserved"),
      keptBytes: sum("kept"),
    },
    states: new Map([...charges].map(([chargeId, { state }]) => [chargeId, state])),
    tail: wallet?.tail.length ?? 0,
  };
}
