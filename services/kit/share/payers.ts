// Remembers which accounts have paid lately. A fair share gives the others a smaller part.

import { createBoundedMap } from "#kit/base/bounded-map.ts";
import type { Clock } from "#kit/time/clock.ts";

/** Which accounts are known to pay, as far as this process has seen. */
export interface Payers {
  /** Notes that money of the account was just held, or that the account just got an answer that costs money. */
  paid(accountId: string): void;
  /** Has the account paid recently? No where this is unknown. */
  isPaying(accountId: string): boolean;
}

/** An account counts as paying for this long after money of it was held, in ms: longer than a pause in a conversation. */
const remembersMs = 15 * 60_000;
/** Accounts that are remembered. An account beyond them has the smaller share until it pays again. */
const maxPayers = 10_000;

/** Makes {@link Payers} that have seen no account yet. */
export function createPayers({ clock }: { clock: Clock }): Payers {
  const paidAtMs = createBoundedMap<number>(maxPayers);
  return {
    paid: (accountId) => paidAtMs.set(accountId, clock.now()),
    isPaying(accountId) {
      const atMs = paidAtMs.get(accountId);
      return atMs !== undefined && clock.now() - atMs < remembersMs;
    },
  };
}
