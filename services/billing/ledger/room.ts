// Says how much a new hold may take: from the free balance, and from its key's limit. A key that an earlier release counted only
// by months is refused here first, and `usage/key-totals.ts` adds it up.

import { ErrorReason } from "#kit/base/errors.ts";
import type { LedgerView } from "./change.ts";
import type { Outcome, Refused, Reserve } from "./operations.ts";
import { advanceTotals, countsForKey, entryTime, type KeyLimit, keySpentIn } from "./wallet.ts";

/** The amounts that a new hold may take. */
export interface Room {
  /** 0 or more, and at most the free balance of the wallet. */
  spendable: bigint;
  /** The rest of the key's limit, 0 or more. Undefined: it has none. */
  ofKey: bigint | undefined;
}

/** The amounts that a new hold of a key may take. */
export function roomFor(
  view: LedgerView,
  { keyId, keyLimit }: Pick<Reserve, "keyId" | "keyLimit">,
  now: number,
): Room {
  const { wallet } = view;
  if (wallet.unit !== "usd_micros" || keyLimit === undefined) {
    return { spendable: wallet.free, ofKey: undefined };
  }
  const counter = view.key(keyId);
  const at = entryTime(wallet, now);
  // An unknown value was refused before.
  const used = counter ? (keySpentIn(keyLimit.period, counter, at) ?? 0n) + counter.held : 0n;
  const ofKey = keyLimit.amount > used ? keyLimit.amount - used : 0n;
  return { spendable: ofKey < wallet.free ? ofKey : wallet.free, ofKey };
}

/**
 * The view with everything that a key's limit counts. An earlier release kept only a key's months. Then the totals of the operation are
 * used, and the entries since. Refused where these are missing: see {@link uncountedKey}.
 */
export function counted(
  view: LedgerView,
  { keyId, keyTotals: told }: Pick<Reserve, "keyId" | "keyTotals">,
  limit: KeyLimit | undefined,
): LedgerView | Refused {
  if (view.wallet.unit !== "usd_micros" || !limit || limit.period === "month") return view;
  const counter = view.key(keyId);
  if (!counter || counter.totals) return view;
  const since = told && told.upTo <= view.wallet.n ? view.entriesAfter(told.upTo) : undefined;
  if (!told || !since) {
    const metadata = { [uncountedMetadata]: keyId, up_to: `${view.wallet.n}` };
    return { kind: "refused", reason: ErrorReason.SERVICE_UNAVAILABLE, metadata };
  }
  let { totals } = told;
  for (const entry of since) {
    const isOfKey = entry.keyId === keyId && countsForKey(view.wallet.unit, entry);
    if (isOfKey) totals = advanceTotals(totals, entry);
  }
  const key = { ...counter, totals };
  return { ...view, key: (id) => (id === keyId ? key : view.key(id)) };
}

const uncountedMetadata = "uncounted_key";

/**
 * The key without totals because of which an operation was refused, and the number up to which its wallet's entries must be added up.
 * Undefined for all other outcomes.
 */
export function uncountedKey(outcome: Outcome): { keyId: string; upTo: number } | undefined {
  if (outcome.kind !== "refused") return undefined;
  const { [uncountedMetadata]: keyId, up_to: upTo } = outcome.metadata;
  return keyId === undefined ? undefined : { keyId, upTo: Number(upTo) };
}
