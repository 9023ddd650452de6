// Answers how much each key of an account was charged today, this week, this month and altogether. Lists of keys show it.

import { turn } from "#kit/base/in-turns.ts";
import type { Clock } from "#kit/time/clock.ts";
import { keysGroupedAtOnce } from "../base/limits.ts";
import { mondayOf } from "../base/periods.ts";
import type { LedgerStore } from "../ledger/store.ts";
import { keySpentThisMonth, type WalletRef } from "../ledger/wallet.ts";
import type { Counting } from "./usage-counting.ts";
import type { UsageStore } from "./usage-store.ts";

const dayMs = 86_400_000;
const daySeconds = 86_400;

/** A key's charges, in USD micros. */
export interface KeyUsage {
  keyId: string;
  monthSpent: bigint;
  /** The sum of its open holds. */
  held: bigint;
  /** Absent while the journal is not counted to its end. */
  totals?: { spent: bigint; daySpent: bigint; weekSpent: bigint };
}

/** The parts that key usage needs. */
export interface KeyUsageContext {
  store: Pick<LedgerStore, "keyCounters">;
  usage: Pick<UsageStore, "groups" | "keyTotals">;
  counting: Pick<Counting, "catchUpKeys">;
  clock: Clock;
}

/**
 * The charges of an account's keys in its USD wallet. Months and holds are from the counters that limits use, days and weeks from the
 * rollup. The rest is from the totals that are counted with it.
 */
export async function readKeyUsage(
  { store, usage, counting, clock }: KeyUsageContext,
  accountId: string,
  keyIds: readonly string[],
): Promise<KeyUsage[]> {
  const wallet: WalletRef = { accountId, unit: "usd_micros" };
  const found = await store.keyCounters(wallet, keyIds);
  const counters = new Map(found.map((counter) => [counter.keyId, counter]));
  const now = clock.now();
  const common = (keyId: string) => {
    const counter = counters.get(keyId);
    const monthSpent = counter ? keySpentThisMonth(counter, now) : 0n;
    return { keyId, monthSpent, held: counter?.held ?? 0n };
  };
  if (!(await counting.catchUpKeys(wallet))) return keyIds.map(common);
  const today = Math.floor(now / dayMs);
  const monday = mondayOf(today);
  const usages: KeyUsage[] = [];
  for (let from = 0; from < keyIds.length; from += keysGroupedAtOnce) {
    const some = keyIds.slice(from, from + keysGroupedAtOnce);
    const [totals, groups] = await Promise.all([
      usage.keyTotals(wallet, some),
      usage.groups({
        ...{ accountId, keyIds: some, byKey: true, byModel: false, byKind: false },
        ...{ from: monday * daySeconds, until: (today + 1) * daySeconds, width: daySeconds },
      }),
    ]);
    const spentOf = new Map(totals.map(({ keyId, spent }) => [keyId, spent]));
    const daysOf = Map.groupBy(
      groups.filter(({ unit }) => unit === wallet.unit),
      ({ keyId }) => keyId,
    );
    for (const keyId of some) {
      let [daySpent, weekSpent] = [0n, 0n];
      for (const { start, sums } of daysOf.get(keyId) ?? []) {
        weekSpent += sums.spent;
        if (start === today * daySeconds) daySpent += sums.spent;
      }
      const spent = spentOf.get(keyId) ?? 0n;
      usages.push({ ...common(keyId), totals: { spent, daySpent, weekSpent } });
    }
    // Other requests come first.
    await turn();
  }
  return usages;
}
