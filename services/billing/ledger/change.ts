// Makes the entry of a decided operation, numbered and chained by its hash, and all that it changes. The functions that decide
// (`ledger.ts`, `take-back.ts`) call it, and stores write its result.

import { hash } from "node:crypto";
import { ErrorReason, type Reason } from "#kit/base/errors.ts";
import type { Outcome, Refused } from "./operations.ts";
import {
  advanceHold,
  advanceKey,
  advanceWallet,
  countsForKey,
  type Entry,
  entryTime,
  type KeyCounter,
  type OpenHold,
  packedRef,
  type Wallet,
  type WalletRef,
  walletName,
} from "./wallet.ts";

/** The data that a fold may read: one wallet at one moment. */
export interface LedgerView {
  wallet: Wallet;
  /** The open hold of this id. */
  hold(holdId: string): OpenHold | undefined;
  /** The counters of this key. Only USD wallets have them. */
  key(keyId: string): KeyCounter | undefined;
  /** The entry that an operation made, at any time in the past. */
  recorded(operationId: string): Entry | undefined;
  /** The wallet's entries after this number, in their order. Undefined where they are not all available. */
  entriesAfter(number: number): readonly Entry[] | undefined;
}

/** An entry to be written, with all its changes. A store writes all of it or nothing. */
export interface Change {
  entry: Entry;
  /** The wallet after it. */
  wallet: Wallet;
  /** The entry's hold after it. Undefined: it is not open, and its row is deleted. */
  hold: OpenHold | undefined;
  /** The key's counters after it. Undefined: unchanged. */
  key: KeyCounter | undefined;
}

/** An outcome, with its change where there is one. Replays and refusals change nothing. */
export interface Folded {
  outcome: Outcome;
  change?: Change;
}

/** The change of an entry, which is numbered, timed and chained here as the wallet's next. Its maker gives it away. */
export function record(view: LedgerView, now: number, entry: Entry): Change {
  const { wallet } = view;
  entry.n = wallet.n + 1;
  entry.at = entryTime(wallet, now);
  entry.hash = entryHash(wallet.hash, wallet, entry);
  return {
    entry,
    wallet: advanceWallet(wallet, entry),
    hold: advanceHold(entry.kind === "extend" ? view.hold(entry.holdId) : undefined, entry),
    key: countsForKey(wallet.unit, entry) ? advanceKey(view.key(entry.keyId), entry) : undefined,
  };
}

/** An entry of neither money nor a hold, before it has its place in the journal. */
export const blank = {
  n: 0,
  holdId: "",
  holdKind: "",
  keyId: "",
  amount: 0n,
  freeDelta: 0n,
  heldDelta: 0n,
  spentDelta: 0n,
  ref: "",
  record: "",
  at: 0,
  checkAt: 0,
  hash: "",
} satisfies Partial<Entry>;

/** The operation was recorded with other content. */
export function mismatch(operationId: string): { outcome: Refused } {
  return refused(ErrorReason.OPERATION_MISMATCH, { operation_id: operationId });
}

/** Nothing is changed. */
export function refused(
  reason: Reason,
  metadata: Record<string, string> = {},
): { outcome: Refused } {
  return { outcome: { kind: "refused", reason, metadata } };
}

/**
 * SHA-256, lower-case hexadecimal, of an entry's canonical form with the hash before it ("" for the first). The form is a JSON array of
 * fixed order, in which no two entries are equal. It holds the wallet's name, so that an entry cannot be moved to another wallet.
 */
export function entryHash(previous: string, wallet: WalletRef, entry: Omit<Entry, "hash">): string {
  const form = [
    previous,
    walletName(wallet),
    entry.n,
    entry.operationId,
    entry.kind,
    entry.holdId,
    entry.holdKind,
    entry.keyId,
    entry.amount.toString(),
    entry.freeDelta.toString(),
    entry.heldDelta.toString(),
    entry.spentDelta.toString(),
    packedRef(entry),
    entry.at,
    entry.checkAt,
  ];
  return hash("sha256", JSON.stringify(form));
}
