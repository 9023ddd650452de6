// Computes costs by prices for a million units, and the month to which a charge belongs.

/** Prices are for a million units, in the wallet's smallest unit. */
const million = 1_000_000n;

/** A number of units (tokens, characters) and their price for a million. Neither may be negative. */
export interface PricedUnits {
  units: bigint;
  perMillion: bigint;
}

/** Sum of units × price, divided by a million once, rounded up. Hold and charge use this one function. */
export function costOf(parts: readonly PricedUnits[]): bigint {
  let sum = 0n;
  for (const { units, perMillion } of parts) {
    if (units < 0n || perMillion < 0n) throw new RangeError("units and prices are never negative");
    sum += units * perMillion;
  }
  return (sum + million - 1n) / million;
}

/** "2026-11": the calendar month in UTC to which a charge counts. */
export function monthOf(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(0, 7);
}
