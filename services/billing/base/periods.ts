// Counts charges by day, week and month of UTC, for keys' limits and months of wallets. It also copes with clocks that were
// ahead, and with refunds of an earlier period.

import { monthOf } from "#common/words/money.ts";

/** Periods of UTC begin with a day. */
const dayMs = 86_400_000;

/** The period after which a key's limit starts over, by UTC. Weeks begin on Mondays. "ever": it never starts over. */
export type LimitPeriod = "day" | "week" | "month" | "ever";

/** The charges of a day, week or month (UTC). "" for none. */
export interface PeriodTotal {
  /** "2026-11-23": the day, or the Monday of the week. "2026-11": the month. */
  period: string;
  spent: bigint;
}

/** The period of the last entry, and the one before it. The latter counts on when a clock comes back that was ahead. */
export interface Periods extends PeriodTotal {
  last: PeriodTotal;
}

/** The part of an entry that its periods need. `at`: its time, in ms since the epoch. */
interface PeriodCharge {
  at: number;
  spentDelta: bigint;
}

const noPeriod: PeriodTotal = { period: "", spent: 0n };
/** Before the first entry. */
export const noPeriods: Periods = { ...noPeriod, last: noPeriod };
/** The names of the periods (UTC) of a time. */
type PeriodNames = Readonly<Record<Exclude<LimitPeriod, "ever">, string>>;

/** The periods of a time in ms since the epoch. Remembers the last result, because every entry needs it. */
export const periodsAt = (() => {
  let known = Number.NaN;
  let names: PeriodNames = { day: "", week: "", month: "" };
  return (ms: number): PeriodNames => {
    const asked = Math.floor(ms / dayMs);
    if (asked !== known) {
      known = asked;
      names = { day: dayName(asked), week: dayName(mondayOf(asked)), month: monthOf(ms) };
    }
    return names;
  };
})();

/** Day 0 since the epoch is a Thursday, so the first Monday is day 4. */
const firstMonday = 4;

/** The Monday of a day's week, both in days since the epoch. */
export function mondayOf(day: number): number {
  return day - ((((day - firstMonday) % 7) + 7) % 7);
}

function dayName(day: number): string {
  return new Date(day * dayMs).toISOString().slice(0, 10);
}

/** The charges of a period. 0 where the period is not remembered. */
export function spentInPeriod(period: string, periods: Periods): bigint {
  if (period === periods.period) return periods.spent;
  return period === periods.last.period ? periods.last.spent : 0n;
}

/**
 * The totals after a charge or a refund. Where its period is not the present one, a new one begins, or the last one counts on. A refund
 * lowers the period of its charge, as long as that is remembered. A period's total is never below 0. `refundedAt`: for a refund, when
 * the charge was made that it gives back.
 */
export function periodsAfter(
  { at, spentDelta }: PeriodCharge,
  refundedAt: number | undefined,
  periods: Periods,
  kind: keyof PeriodNames,
): Periods {
  const period = periodsAt(at)[kind];
  const isNew = period !== periods.period;
  if (refundedAt === undefined && spentDelta === 0n && !isNew) return periods;
  const charge = refundedAt === undefined ? spentDelta : 0n;
  const spent = isNew ? spentInPeriod(period, periods) : periods.spent;
  const last = isNew ? { period: periods.period, spent: periods.spent } : periods.last;
  const after = { period, spent: spent + charge, last };
  if (refundedAt === undefined) return after;
  const charged = periodsAt(refundedAt)[kind];
  if (charged === period) return { ...after, spent: lowered(spent, spentDelta) };
  if (charged !== last.period) return after;
  return { ...after, last: { ...last, spent: lowered(last.spent, spentDelta) } };
}

function lowered(spent: bigint, by: bigint): bigint {
  return spent + by > 0n ? spent + by : 0n;
}
