// Decides how much of a grant an operator may take back. It is a part of `ledger.ts`, in a file of its own for its length.

import { ErrorReason } from "#kit/base/errors.ts";
import { maxTakeBacks } from "../base/limits.ts";
import { blank, type Folded, type LedgerView, mismatch, record, refused } from "./change.ts";
import type { TakeBack } from "./operations.ts";
import { operationIds } from "./wallet.ts";

/** Ids of all operations that may have taken a grant back, in their order. */
export function takeBackSlots(entry: number): string[] {
  return Array.from({ length: maxTakeBacks }, (_, i) => operationIds.takeBack(entry, i + 1));
}

/**
 * Takes a grant back. Its entry is a grant of an amount below 0, which every release adds up rightly. Only free money is taken, so holds
 * keep theirs and nothing falls below 0. All entries of one grant together take at most its amount.
 */
export function takeBack(view: LedgerView, operation: TakeBack, now: number): Folded {
  const { entry: n, takeBackId, upTo = false } = operation;
  const grant = view.recorded(operationIds.grant(operation.grantId));
  // An entry that took a grant back is no grant itself.
  if (grant?.n !== n || grant.amount <= 0n) return refused(ErrorReason.ENTRY_NOT_FOUND);
  let left = grant.amount;
  for (const operationId of takeBackSlots(n)) {
    const known = view.recorded(operationId);
    const asked = operation.amount ?? left;
    if (known?.ref === takeBackId) {
      const { entry, amount } = { entry: known.n, amount: -known.amount };
      const isSame = upTo ? amount <= asked : amount === asked;
      if (!isSame) return mismatch(takeBackId);
      const { wallet } = view;
      return { outcome: { kind: "takenBack", wallet, amount, entry, replayed: true } };
    }
    if (!known) return takeUpTo(view, now, { ...operation, operationId, asked, left });
    left += known.amount;
  }
  return refused(ErrorReason.OPERATION_CONFLICT, { times: `${maxTakeBacks}` });
}

/** Takes the asked amount in the next free slot. `left`: the part of the grant that was not taken back yet. */
function takeUpTo(
  view: LedgerView,
  now: number,
  operation: TakeBack & { operationId: string; asked: bigint; left: bigint },
): Folded {
  const { operationId, entry: n, takeBackId, asked, left } = operation;
  const { free, unit } = view.wallet;
  if (left === 0n) return refused(ErrorReason.INVALID_ARGUMENT, { field: "entry_number" });
  if (asked > left) return refused(ErrorReason.INVALID_ARGUMENT, { field: "amount" });
  const taken = operation.upTo && free < asked ? free : asked;
  if (taken > free || taken === 0n) {
    const { INSUFFICIENT_BALANCE, INSUFFICIENT_CREDITS } = ErrorReason;
    const reason = unit === "usd_micros" ? INSUFFICIENT_BALANCE : INSUFFICIENT_CREDITS;
    return refused(reason, { required: `${asked}`, spendable: `${free}` });
  }
  // From here on it must succeed.
  const change = record(view, now, {
    ...blank,
    operationId,
    kind: "grant",
    amount: -taken,
    freeDelta: -taken,
    ref: takeBackId,
    record: JSON.stringify({ takeBackOf: n }),
  });
  const { entry, wallet } = change;
  const outcome = { kind: "takenBack", wallet, amount: taken, entry: entry.n } as const;
  return { outcome: { ...outcome, replayed: false }, change };
}
