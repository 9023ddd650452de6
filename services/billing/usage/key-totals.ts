// Adds up a key's charges where an earlier release kept only its months, and a limit by day, week or for ever needs more. For keys
// that have their totals it does nothing.

import { type BoundedMap, createBoundedMap } from "#kit/base/bounded-map.ts";
import { ErrorReason } from "#kit/base/errors.ts";
import { turn } from "#kit/base/in-turns.ts";
import { addingWaitMs, maxAddings, maxTotalsRounds, usagePageSize } from "../base/limits.ts";
import type { Operation, Outcome, ToldTotals } from "../ledger/operations.ts";
import { uncountedKey } from "../ledger/room.ts";
import type { LedgerStore } from "../ledger/store.ts";
import {
  advanceTotals,
  countsForKey,
  noTotals,
  type WalletRef,
  walletName,
} from "../ledger/wallet.ts";

/** How far a key's journal is added up, and the page that is being read for it. */
interface Adding {
  told: ToldTotals;
  page: Promise<void> | undefined;
}

/** By wallet and key. */
type Addings = BoundedMap<Adding>;

/** The outcomes of a transition, made again with a key's totals where they were refused because these are missing. */
export type Counted = (
  wallet: WalletRef,
  operations: readonly Operation[],
  outcomes: Outcome[],
  now: number,
) => Promise<Outcome[]>;

/**
 * Makes transitions with a key's totals that earlier releases did not keep: its charges in a day, a week and altogether. The fold
 * refuses the first operation that needs these. Then the journal is added up from its first entry, and the operation is made again
 * with the totals. The transition writes the totals down, so this happens once a key. Operations of the same key share the adding up.
 * Where it takes longer than a caller waits, they are refused, and the next ones continue from there.
 */
export function createKeyTotals(store: LedgerStore): Counted {
  const addings: Addings = createBoundedMap(maxAddings);
  return async (wallet, operations, outcomes, now) => {
    if (!outcomes.some(uncountedKey)) return outcomes;
    return await applyCounted(store, addings, wallet, operations, now, outcomes);
  };
}

/** The store, whose transitions also have such totals. */
export function withKeyTotals(store: LedgerStore): LedgerStore {
  const counted = createKeyTotals(store);
  return {
    ...store,
    apply: (wallet, operations, now) =>
      store
        .apply(wallet, operations, now)
        .then((outcomes) => counted(wallet, operations, outcomes, now)),
  };
}

async function applyCounted(
  store: LedgerStore,
  addings: Addings,
  wallet: WalletRef,
  operations: readonly Operation[],
  now: number,
  first: readonly Outcome[],
): Promise<Outcome[]> {
  const outcomes = [...first];
  const untilMs = performance.now() + addingWaitMs;
  for (let round = 0; round < maxTotalsRounds; round++) {
    const left = [...outcomes.entries()].flatMap(([at, outcome]) => {
      const missing = uncountedKey(outcome);
      const operation = operations[at];
      return missing && operation ? [{ at, operation, ...missing }] : [];
    });
    if (left.length === 0) return outcomes;
    const again: { at: number; operation: Operation }[] = [];
    for (const { at, operation, keyId, upTo } of left) {
      const adding = addingOf(addings, wallet, keyId);
      // The journal is shorter than the part that was added up, because a backup was restored.
      if (round > 0 && adding.told.upTo > upTo) adding.told = nothingTold;
      const keyTotals = await addUp(store, wallet, keyId, adding, { upTo, untilMs });
      if (keyTotals) again.push({ at, operation: { ...operation, keyTotals } as Operation });
    }
    if (again.length === 0) break;
    const results = await store.apply(
      wallet,
      again.map(({ operation }) => operation),
      now,
    );
    for (const [i, { at }] of again.entries()) {
      const outcome = results[i];
      if (outcome) outcomes[at] = outcome;
    }
  }
  // The journal is long, or is written to faster than it can be read. Its callers try again.
  const metadata = { retry_after_ms: "1000" };
  return outcomes.map((outcome) =>
    uncountedKey(outcome)
      ? { kind: "refused", reason: ErrorReason.SERVICE_UNAVAILABLE, metadata }
      : outcome,
  );
}

const nothingTold: ToldTotals = { totals: noTotals, upTo: 0 };

function addingOf(addings: Addings, wallet: WalletRef, keyId: string): Adding {
  const name = `${walletName(wallet)}/${keyId}`;
  const known = addings.get(name);
  if (known) return known;
  const begun: Adding = { told: nothingTold, page: undefined };
  addings.set(name, begun);
  return begun;
}

/** The totals of a key's entries up to a number. Undefined where that takes too long. */
async function addUp(
  store: Pick<LedgerStore, "entries">,
  wallet: WalletRef,
  keyId: string,
  adding: Adding,
  { upTo, untilMs }: { upTo: number; untilMs: number },
): Promise<ToldTotals | undefined> {
  while (adding.told.upTo < upTo) {
    if (performance.now() > untilMs) return undefined;
    adding.page ??= addPage(store, wallet, keyId, adding, upTo).finally(() => {
      adding.page = undefined;
    });
    await adding.page;
  }
  return adding.told;
}

async function addPage(
  store: Pick<LedgerStore, "entries">,
  wallet: WalletRef,
  keyId: string,
  adding: Adding,
  upTo: number,
): Promise<void> {
  const { upTo: n } = adding.told;
  let { totals } = adding.told;
  const limit = Math.min(usagePageSize, upTo - n);
  const entries = await store.entries(wallet, { below: n + limit + 1, limit });
  for (const entry of entries.toReversed()) {
    const counts = entry.n > n && entry.keyId === keyId && countsForKey(wallet.unit, entry);
    if (counts) totals = advanceTotals(totals, entry);
  }
  adding.told = { totals, upTo: n + limit };
  // Other requests come first.
  await turn();
}
