// Says what a monthly grant is, and when the next one is due. It is pure: `monthly.ts` gives the grants.

/** The amounts that an account gets on the first day of each month. Months are those of UTC. */
export interface MonthlyGrant {
  readonly accountId: string;
  /** 0 or more. */
  readonly usdMicros: bigint;
  /** 0 or more. Not both amounts are 0. */
  readonly credits: bigint;
  /** The beginning of the next month in which it is given, in ms since the epoch. */
  readonly dueAt: number;
}

/** Amounts of a change. Undefined: it stays. 0: none. */
export type AskedGrant = Partial<Pick<MonthlyGrant, "usdMicros" | "credits">>;

/** The grant of an account after a change, which may be none. A grant that was none is given from the next month on. */
export function changedGrant(
  accountId: string,
  before: MonthlyGrant | undefined,
  { usdMicros = before?.usdMicros ?? 0n, credits = before?.credits ?? 0n }: AskedGrant,
  now: number,
): MonthlyGrant | undefined {
  if (usdMicros === 0n && credits === 0n) return undefined;
  return { accountId, usdMicros, credits, dueAt: before?.dueAt ?? nextMonthAt(now) };
}

/** The beginning of the month after that of a time, both in ms since the epoch. */
export function nextMonthAt(now: number): number {
  const date = new Date(now);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
}
