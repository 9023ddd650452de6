import type { GetBalanceResponse, Wallet } from "#proto/genmesh/billing/v1/billing_service_pb.ts";

/** The public document of both wallets; a wallet without entries has zeros. */
export function toBalanceDocument({ usdMicros, credits }: GetBalanceResponse) {
  return {
    object: "billing.balance",
    availableUsdMicros: amount(usdMicros, "available"),
    reservedUsdMicros: amount(usdMicros, "reserved"),
    spendableUsdMicros: amount(usdMicros, "spendable"),
    monthSpendUsdMicros: amount(usdMicros, "monthSpent"),
    credits: {
      available: amount(credits, "available"),
      reserved: amount(credits, "reserved"),
      spendable: amount(credits, "spendable"),
      monthSpent: amount(credits, "monthSpent"),
    },
  };
}

// Exact up to 2^53: nine billion dollars.
function amount(
  wallet: Wallet | undefined,
  field: "available" | "reserved" | "spendable" | "monthSpent",
): number {
  return Number(wallet?.[field] ?? 0n);
}
