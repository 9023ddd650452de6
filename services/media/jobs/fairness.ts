// Decides whose job is next, so that accounts take turns. It is pure. Claims in both databases and the shown places in line go by
// it.

/** A job that could be claimed. */
export interface Candidate {
  jobId: string;
  accountId: string;
  createdAt: number;
  /** Running jobs of the kind of its account, without this one. */
  running: number;
}

/** The candidates of the accounts that run the fewest jobs. */
export function fewestRunning<C extends Candidate>(candidates: readonly C[]): C[] {
  const fewest = candidates.reduce((least, { running }) => Math.min(least, running), Infinity);
  return candidates.filter(({ running }) => running === fewest);
}

/**
 * Of {@link fewestRunning}, the job of the account that was served longest ago, then the oldest job. Without the first rule, a lone
 * worker would do an account's thousand jobs before another's first. `lastServed`: ms since the epoch. 0: never.
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

/** An account with waiting jobs of a kind. */
export interface WaitingAccount {
  accountId: string;
  /** Its running jobs of the kind. */
  running: number;
  /** When it was last served, in ms since the epoch. 0: never. */
  servedAt: number;
  /** When its waiting jobs were made, oldest first. At least one. */
  createdAt: readonly number[];
}

/** The turn of a waiting job. */
interface Turn {
  accountId: string;
  createdAt: number;
}

/**
 * The first `most` waiting jobs in the order in which {@link fairestOf} would have them claimed if no running one ended meanwhile. Each
 * claim adds a running job to its account. So accounts that run equally many take turns, and others join when these run as many.
 */
export function turnsOf(accounts: readonly WaitingAccount[], most: number): Turn[] {
  const joining = accounts.toSorted(
    (a, b) =>
      a.running - b.running ||
      a.servedAt - b.servedAt ||
      (a.createdAt[0] ?? 0) - (b.createdAt[0] ?? 0),
  );
  const turns: Turn[] = [];
  let round: WaitingAccount[] = [];
  let joined = 0;
  let running = 0;
  while (turns.length < most) {
    if (round.length === 0) running = joining[joined]?.running ?? Infinity;
    if (running === Infinity) break;
    const before = joined;
    while (joining[joined]?.running === running) joined++;
    // Accounts that join were served before those that just had a turn.
    round = [...joining.slice(before, joined), ...round];
    const taken = running++;
    for (const { accountId, createdAt, running: first } of round) {
      const at = createdAt[taken - first];
      if (at !== undefined) turns.push({ accountId, createdAt: at });
    }
    round = round.filter((one) => one.createdAt.length > running - one.running);
  }
  return turns.slice(0, most);
}
