import { ErrorReason, type Reason } from "#kit/errors.ts";
import { seal, type UnsealedEntry } from "./chain.ts";
import { maxGranted, maxOpenHolds, openHoldsRetryMs } from "./limits.ts";
import type { Extend, Grant, Operation, Outcome, Refused, Reserve, Settle } from "./operations.ts";
import {
  advanceHold,
  advanceKey,
  advanceWallet,
  countsForKey,
  type Entry,
  entryTime,
  type KeyCounter,
  keySpentThisMonth,
  type OpenHold,
  operationIds,
  type Wallet,
} from "./wallet.ts";

/** What a fold may look at: one wallet at one moment. */
export interface LedgerView {
  wallet: Wallet;
  /** The open hold of this id. */
  hold(holdId: string): OpenHold | undefined;
  /** The counters of this key; asked of USD wallets only. */
  key(keyId: string): KeyCounter | undefined;
  /** The entry that an operation made, however long ago. */
  recorded(operationId: string): Entry | undefined;
}

/** An entry to be written, with all that it changes. Whoever stores it stores all of it or nothing. */
export interface Change {
  entry: Entry;
  /** The wallet after it. */
  wallet: Wallet;
  /** The entry's hold after it; undefined: it is not open, and no row of it stays. */
  hold: OpenHold | undefined;
  /** The key's counters after it; undefined: unchanged. */
  key: KeyCounter | undefined;
}

/** An outcome, and the change behind it where there is one. Replays and refusals change nothing. */
export interface Folded {
  outcome: Outcome;
  change?: Change;
}

/** The transition function of a wallet. */
export type Fold = (view: LedgerView, operation: Operation, now: number) => Folded;

/** What one operation does to a wallet at `now` (ms since the epoch). Pure: the view is not changed. */
export const fold: Fold = (view, operation, now) => {
  switch (operation.kind) {
    case "grant":
      return grant(view, operation, now);
    case "reserve":
      return reserve(view, operation, now);
    case "settle":
    case "release":
      return close(view, operation, now);
    case "extend":
      return extend(view, operation, now);
  }
};

function grant(view: LedgerView, operation: Grant, now: number): Folded {
  const { amount } = operation;
  const operationId = operationIds.grant(operation.grantId);
  const known = view.recorded(operationId);
  if (known) {
    if (known.amount !== amount) return mismatch(operationId);
    return { outcome: { kind: "granted", wallet: view.wallet, replayed: true } };
  }
  if (view.wallet.granted + amount > maxGranted) {
    return refused(ErrorReason.INVALID_ARGUMENT, { field: "amount" });
  }
  // From here on it must succeed.
  const change = record(view, now, {
    ...blank,
    operationId,
    kind: "grant",
    amount,
    freeDelta: amount,
  });
  return { outcome: { kind: "granted", wallet: change.wallet, replayed: false }, change };
}

function reserve(view: LedgerView, operation: Reserve, now: number): Folded {
  const { holdId, amount: most, least = most, holdKind, keyId, ref, checkAt } = operation;
  const operationId = operationIds.open(holdId);
  const known = view.recorded(operationId);
  if (known) {
    // What was held then is what counts, though wallet and key may have more or less by now.
    const same =
      known.amount >= least &&
      known.amount <= most &&
      known.holdKind === holdKind &&
      known.keyId === keyId &&
      known.ref === ref &&
      known.checkAt === checkAt;
    if (!same) return mismatch(operationId);
    const state = stateOf(view.recorded(operationIds.close(holdId)));
    return { outcome: { kind: "reserved", state, held: known.amount, replayed: true } };
  }
  const room = roomFor(view, operation, now);
  const amount = smaller(room.spendable, most);
  const refusal = refusalOf(view, operation, room);
  if (refusal) return { outcome: refusal };
  // From here on it must succeed.
  const change = record(view, now, {
    ...blank,
    operationId,
    kind: "hold",
    holdId,
    holdKind,
    keyId,
    amount,
    freeDelta: -amount,
    heldDelta: amount,
    ref,
    checkAt,
  });
  return { outcome: { kind: "reserved", state: "open", held: amount, replayed: false }, change };
}

/** What a new hold may take. */
interface Room {
  /** 0 or more, and at most what is free in the wallet. */
  spendable: bigint;
  /** What the key's limit leaves, 0 or more; undefined: it has none. */
  ofKey: bigint | undefined;
}

function roomFor(view: LedgerView, { keyId, keyMonthlyLimit }: Reserve, now: number): Room {
  const { wallet } = view;
  if (wallet.unit !== "usd_micros" || keyMonthlyLimit === undefined) {
    return { spendable: wallet.free, ofKey: undefined };
  }
  const counter = view.key(keyId);
  const used = counter ? keySpentThisMonth(counter, entryTime(wallet, now)) + counter.held : 0n;
  const ofKey = keyMonthlyLimit > used ? keyMonthlyLimit - used : 0n;
  return { spendable: smaller(ofKey, wallet.free), ofKey };
}

/**
 * Why a new hold cannot be opened: first what waiting does not mend (the key's limit, then the balance), last what it
 * does. None of these is recorded, so the same operation may succeed later.
 */
function refusalOf({ wallet }: LedgerView, operation: Reserve, room: Room): Refused | undefined {
  const { amount, least = amount, keyMonthlyLimit } = operation;
  const money = { required: `${least}`, spendable: `${room.spendable}` };
  if (room.ofKey !== undefined && room.ofKey < least) {
    const metadata = { limit: `${keyMonthlyLimit}`, ...money };
    return refused(ErrorReason.KEY_LIMIT_EXCEEDED, metadata).outcome;
  }
  if (wallet.free < least) {
    const { INSUFFICIENT_BALANCE, INSUFFICIENT_CREDITS } = ErrorReason;
    const reason = wallet.unit === "usd_micros" ? INSUFFICIENT_BALANCE : INSUFFICIENT_CREDITS;
    return refused(reason, money).outcome;
  }
  if (wallet.openHolds >= maxOpenHolds) {
    const retryMs = openHoldsRetryMs[wallet.unit];
    const metadata = { limit: `${maxOpenHolds}`, retry_after_ms: `${retryMs}` };
    return refused(ErrorReason.TOO_MANY_OPEN_REQUESTS, metadata).outcome;
  }
  return undefined;
}

function close(
  view: LedgerView,
  operation: Settle | { kind: "release"; holdId: string },
  now: number,
): Folded {
  const { holdId } = operation;
  const operationId = operationIds.close(holdId);
  const hold = view.hold(holdId);
  if (!hold) {
    const closed = view.recorded(operationId);
    if (!closed) return refused(ErrorReason.HOLD_NOT_FOUND);
    const state = closed.kind === "settle" ? "settled" : "released";
    return { outcome: { kind: "closed", state, charged: closed.spentDelta, replayed: true } };
  }
  const asked = operation.kind === "settle" ? operation.amount : 0n;
  if (operation.kind === "settle" && operation.withinHold && asked > hold.amount) {
    return refused(ErrorReason.INVALID_ARGUMENT, { field: "settle_amount" });
  }
  // From here on it must succeed.
  const charged = smaller(asked, hold.amount);
  const change = record(view, now, {
    ...ofHold(hold),
    operationId,
    kind: operation.kind,
    amount: asked,
    freeDelta: hold.amount - charged,
    heldDelta: -hold.amount,
    spentDelta: charged,
  });
  const state = operation.kind === "settle" ? "settled" : "released";
  return { outcome: { kind: "closed", state, charged, replayed: false }, change };
}

function extend(view: LedgerView, operation: Extend, now: number): Folded {
  const { holdId, step, checkAt } = operation;
  const operationId = operationIds.extend(holdId, step);
  const known = view.recorded(operationId);
  if (known) {
    if (known.checkAt !== checkAt) return mismatch(operationId);
    return { outcome: { kind: "extended", replayed: true } };
  }
  const hold = view.hold(holdId);
  if (!hold) return refused(ErrorReason.HOLD_NOT_FOUND);
  if (step !== hold.extensions + 1) return refused(ErrorReason.OPERATION_CONFLICT);
  // From here on it must succeed.
  const change = record(view, now, { ...ofHold(hold), operationId, kind: "extend", checkAt });
  return { outcome: { kind: "extended", replayed: false }, change };
}

/** The change that an entry makes, numbered, timed and chained as the wallet's next. */
function record(view: LedgerView, now: number, content: Content): Change {
  const { wallet } = view;
  const unsealed: UnsealedEntry = { ...content, n: wallet.n + 1, at: entryTime(wallet, now) };
  const entry = seal(wallet.hash, wallet, unsealed);
  return {
    entry,
    wallet: advanceWallet(wallet, entry),
    hold: advanceHold(entry.kind === "extend" ? view.hold(entry.holdId) : undefined, entry),
    key: countsForKey(wallet.unit, entry) ? advanceKey(view.key(entry.keyId), entry) : undefined,
  };
}

/** An entry's own part: all but its place in the journal. */
type Content = Omit<UnsealedEntry, "n" | "at">;

/** An entry that moves nothing and names no hold. */
const blank = {
  holdId: "",
  holdKind: "",
  keyId: "",
  amount: 0n,
  freeDelta: 0n,
  heldDelta: 0n,
  spentDelta: 0n,
  ref: "",
  checkAt: 0,
} satisfies Partial<Content>;

function ofHold({ holdId, holdKind, keyId, ref }: OpenHold) {
  return { ...blank, holdId, holdKind, keyId, ref };
}

function stateOf(closed: Entry | undefined): "open" | "settled" | "released" {
  if (!closed) return "open";
  return closed.kind === "settle" ? "settled" : "released";
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function mismatch(operationId: string): { outcome: Refused } {
  return refused(ErrorReason.OPERATION_MISMATCH, { operation_id: operationId });
}

function refused(reason: Reason, metadata: Record<string, string> = {}): { outcome: Refused } {
  return { outcome: { kind: "refused", reason, metadata } };
}
