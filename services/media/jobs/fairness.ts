/** A job that might be claimed. */
export interface Candidate {
  jobId: string;
  accountId: string;
  createdAt: number;
  /** Its account's running jobs of the kind, itself not counted. */
  running: number;
}

/** Those of the accounts that run the fewest jobs. */
export function fewestRunning<C extends Candidate>(candidates: readonly C[]): C[] {
  const fewest = candidates.reduce((least, { running }) => Math.min(least, running), Infinity);
  return candidates.filter(({ running }) => running === fewest);
}

/**
 * Of {@link fewestRunning}, the one of the account that was served longest ago, then the oldest. Without the first, one
 * worker alone would do an account's thousand jobs before another's first. `lastServed`: ms since the epoch; 0: never.
 */
export function fairestOf<C extends Candidate>(
  tied: readonly C[],
  lastServed: (accountId: string) => number,
): C | undefined {
  return tied.reduce<C | undefined>((best, one) => {
    if (!best) return one;
    const order =
      lastServed(one.accountId) - lastServed(best.accountId) || one.createdAt - best.createdAt;
    return order < 0 ? one : best;
  }, undefined);
}
