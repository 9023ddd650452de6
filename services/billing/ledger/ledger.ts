// Decides whether an operation on a wallet may happen, and what it changes. It is the only place that decides about money. It is
// pure: both databases' ledgers call it, within a transaction or a compare-and-set.

import { ErrorReason } from "#kit/base/errors.ts";
import { maxGranted, maxOpenHolds, openHoldsRetryMs } from "../base/limits.ts";
import { blank, type Folded, type LedgerView, mismatch, record, refused } from "./change.ts";
import {
  closeSlot,
  type Draw,
  type Extend,
  type Grant,
  type Operation,
  type Refund,
  type Refused,
  type Release,
  type Reserve,
  type Settle,
} from "./operations.ts";
import { counted, type Room, roomFor } from "./room.ts";
import { takeBack } from "./take-back.ts";
import { type ChargeTold, type Entry, type OpenHold, operationIds } from "./wallet.ts";

/** The transition function of a wallet. */
export type Fold = (view: LedgerView, operation: Operation, now: number) => Folded;

/** The result of one operation on a wallet at `now` (ms since the epoch). Pure: the view is not changed. */
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
    case "draw":
      return draw(view, operation, now);
    case "refund":
      return refund(view, operation, now);
    case "takeBack":
      return takeBack(view, operation, now);
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
    // The amount that was held then counts, although wallet and key may have another amount by now.
    const same =
      known.amount >= least &&
      known.amount <= most &&
      known.holdKind === holdKind &&
      known.keyId === keyId &&
      known.ref === ref &&
      known.checkAt === checkAt;
    if (!same) return mismatch(operationId);
    const state = view.hold(holdId) ? "open" : stateOf(endOf(view, holdId));
    return { outcome: { kind: "reserved", state, held: known.amount, replayed: true } };
  }
  // The request is over. This is a late copy of its opening, and a hold for it would keep money for nothing.
  if (view.recorded(operationIds.charge(holdId))) return refused(ErrorReason.OPERATION_CONFLICT);
  const whole = counted(view, operation, operation.keyLimit);
  if ("reason" in whole) return { outcome: whole };
  const room = roomFor(whole, operation, now);
  const amount = smaller(room.spendable, most);
  const refusal = refusalOf(view, operation, room);
  if (refusal) return { outcome: refusal };
  // From here on it must succeed.
  const change = record(whole, now, {
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

/**
 * The reason why a new hold cannot be opened. Reasons that waiting does not change come first: the key's limit, then the balance. The
 * number of open holds comes last. None of these is recorded, so the same operation may succeed later.
 */
function refusalOf({ wallet }: LedgerView, operation: Reserve, room: Room): Refused | undefined {
  const { amount, least = amount, keyLimit } = operation;
  const money = { required: `${least}`, spendable: `${room.spendable}` };
  if (room.ofKey !== undefined && room.ofKey < least) {
    const metadata = { limit: `${keyLimit?.amount}`, ...money };
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

function close(view: LedgerView, operation: Settle | Release, now: number): Folded {
  const { holdId } = operation;
  const operationId =
    operation.kind === "release" ? closeSlot(operation) : operationIds.close(holdId);
  const hold = view.hold(holdId);
  if (!hold) {
    const closed = view.recorded(operationId) ?? endOf(view, holdId);
    if (!closed) return refused(ErrorReason.HOLD_NOT_FOUND);
    const state = stateOf(closed);
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
    record: operation.record ?? "",
  });
  const state = operation.kind === "settle" ? "settled" : "released";
  return { outcome: { kind: "closed", state, charged, replayed: false }, change };
}

function draw(view: LedgerView, operation: Draw, now: number): Folded {
  const { holdId, amount, keyId, record: told, fromFree } = operation;
  const operationId = operationIds.charge(holdId);
  const hold = view.hold(holdId);
  // An open hold has not been charged, because each of these entries ends it.
  const known = hold ? undefined : decidedCharge(view, holdId);
  if (known) return { outcome: { kind: "drawn", charged: known.spentDelta, replayed: true } };
  const whole = hold ? view : counted(view, operation, fromFree?.keyLimit);
  if ("reason" in whole) return { outcome: whole };
  const room = fromFree ? roomFor(whole, { keyId, ...fromFree }, now).spendable : 0n;
  // From here on it must succeed.
  const charged = hold ? smaller(amount, hold.amount) : amount <= room ? amount : 0n;
  const held = hold?.amount ?? 0n;
  const change = record(whole, now, {
    ...(hold ? ofHold(hold) : { ...blank, holdId, keyId, ref: holdId }),
    operationId,
    kind: "draw",
    amount,
    freeDelta: held - charged,
    heldDelta: -held,
    spentDelta: charged,
    record: told,
  });
  return { outcome: { kind: "drawn", charged, replayed: false }, change };
}

function refund(view: LedgerView, operation: Refund, now: number): Folded {
  const { holdId, entry: n, refundId } = operation;
  const charge = decidedCharge(view, holdId);
  if (charge?.n !== n) return refused(ErrorReason.ENTRY_NOT_FOUND);
  const amount = operation.amount ?? charge.spentDelta;
  const operationId = operationIds.refund(holdId);
  const known = view.recorded(operationId);
  if (known) {
    if (known.ref !== refundId)
      return refused(ErrorReason.OPERATION_CONFLICT, { entry: `${known.n}` });
    if (known.amount !== amount) return mismatch(refundId);
    return {
      outcome: { kind: "refunded", wallet: view.wallet, amount, entry: known.n, replayed: true },
    };
  }
  if (charge.spentDelta === 0n)
    return refused(ErrorReason.INVALID_ARGUMENT, { field: "entry_number" });
  if (amount > charge.spentDelta) return refused(ErrorReason.INVALID_ARGUMENT, { field: "amount" });
  // From here on it must succeed.
  const change = record(view, now, {
    ...blank,
    operationId,
    kind: "refund",
    holdId,
    holdKind: charge.holdKind,
    keyId: charge.keyId,
    amount,
    freeDelta: amount,
    spentDelta: -amount,
    ref: refundId,
    record: JSON.stringify(toldOf(charge)),
  });
  const { entry, wallet } = change;
  return { outcome: { kind: "refunded", wallet, amount, entry: entry.n, replayed: false }, change };
}

/** A refund's record of its charge. */
function toldOf({ n, at, record }: Entry): ChargeTold {
  const told: RecordTold = record === "" ? {} : JSON.parse(record);
  const { model, operation, answerId, upstream, priced } = told;
  return {
    refundOf: n,
    chargedMs: at,
    ...(model === undefined ? {} : { model }),
    ...(operation === undefined ? {} : { operation }),
    ...(answerId === undefined ? {} : { answerId }),
    ...(upstream ? { upstream } : {}),
    ...(priced?.upstreamCostUsdMicros === undefined ? {} : { isCosted: true }),
  };
}

/** The parts of a charge's record that a refund repeats. */
type RecordTold = Partial<ChargeTold> & { priced?: { upstreamCostUsdMicros?: number } };

/** The entry that decided a request's charge. In older releases it was the settlement of its hold. */
function decidedCharge(view: LedgerView, holdId: string): Entry | undefined {
  return view.recorded(operationIds.charge(holdId)) ?? view.recorded(operationIds.close(holdId));
}

/** The entry that ended a hold, or prevents it from being opened. */
function endOf(view: LedgerView, holdId: string): Entry | undefined {
  return decidedCharge(view, holdId) ?? view.recorded(operationIds.lapse(holdId));
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

function ofHold({ holdId, holdKind, keyId, ref }: OpenHold) {
  return { ...blank, holdId, holdKind, keyId, ref };
}

function stateOf(closed: Entry | undefined): "settled" | "released" {
  return closed?.kind === "settle" || closed?.kind === "draw" ? "settled" : "released";
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
