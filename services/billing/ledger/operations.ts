// The operations that can be done to a wallet, and the outcomes that each may have. They are types alone: `requests.ts` makes
// operations of messages, and `ledger.ts` carries them out.

import type { Reason } from "#kit/base/errors.ts";
import {
  type HoldKind,
  type KeyLimit,
  type KeyTotals,
  operationIds,
  type Wallet,
} from "./wallet.ts";

/** An operation on one wallet. It is well-formed: the rules of the wire were checked before. */
export type Operation = Grant | Reserve | Settle | Release | Extend | Draw | Refund | TakeBack;

/** Adds funds. Operation id `grant:<grantId>`. */
export interface Grant {
  kind: "grant";
  grantId: string;
  /** 1 or more. */
  amount: bigint;
}

/** Opens a hold. Operation id `<hold>:open`. */
export interface Reserve {
  kind: "reserve";
  holdId: string;
  /** 0 or more. */
  amount: bigint;
  holdKind: HoldKind;
  keyId: string;
  ref: string;
  /** When its owner is asked whether it is still open, in ms since the epoch. */
  checkAt: number;
  /** The key's limit. Undefined: none. It is no part of the content, so a repeat may differ. */
  keyLimit?: KeyLimit | undefined;
  keyTotals?: ToldTotals | undefined;
  /**
   * The least amount that the hold may take, 0 up to the amount, where wallet or key have less. It then takes what they have.
   * Undefined: all of it.
   */
  least?: bigint | undefined;
}

/** Where an earlier release wrote some of a key's entries: their totals up to one of them. No part of the content. */
export interface ToldTotals {
  totals: KeyTotals;
  /** Number of the wallet's last entry that was read. */
  upTo: number;
}

/** Ends a hold by charging min(amount, hold). Operation id `<hold>:close`. */
export interface Settle {
  kind: "settle";
  holdId: string;
  /** 0 or more. */
  amount: bigint;
  /** The journal's record of the work that was paid for, as JSON. Undefined or empty where its owner gives none. */
  record?: string | undefined;
  /** For the operator. An amount above the hold is refused. An owner's amount is reduced to the hold. */
  withinHold?: boolean | undefined;
}

/** Ends a hold without a charge. Operation id `<hold>:close`, like that of a settlement. */
export interface Release {
  kind: "release";
  holdId: string;
  /** Its lease is over and its owner knows of no charge. Operation id `<hold>:lapse`, which does not decide the charge. */
  isLapse?: boolean | undefined;
  /** The same as in a settlement. */
  record?: string | undefined;
}

/**
 * Charges a request and ends its hold. Operation id `charge:<hold>`: the first one wins. It is recorded even where it is more than the
 * wallet has, so that every repeat reads the same charge. It is never refused.
 */
export interface Draw {
  kind: "draw";
  holdId: string;
  /** 0 or more. The part above the hold is not charged. */
  amount: bigint;
  /** The key that pays, where the hold is closed. */
  keyId: string;
  /** The journal's record of the request, as JSON. */
  record: string;
  /**
   * Where the hold was closed before, the charge is taken from the free balance, if wallet and key have all of it. Undefined: nothing
   * is charged then.
   */
  fromFree?: { keyLimit: KeyLimit | undefined } | undefined;
  keyTotals?: ToldTotals | undefined;
}

/** Moves a hold's check time. Operation id `<hold>:extend:<step>`. */
export interface Extend {
  kind: "extend";
  holdId: string;
  /** One more than the extensions that the hold had when its owner was asked. */
  step: number;
  /** In ms since the epoch. */
  checkAt: number;
}

/** Gives a request's or job's charge back. Operation id `refund:<hold>`: a charge is given back once, in whole or in part. */
export interface Refund {
  kind: "refund";
  /** The hold of the charge. */
  holdId: string;
  /** The number of the charge's entry. */
  entry: number;
  /** Chosen by the operator's tool. A repeat brings the same. */
  refundId: string;
  /** 1 or more. Undefined: the whole charge. */
  amount?: bigint | undefined;
}

/** Takes a grant, or a part of it, out of the free balance. Operation id `grant:take-back/<entry>/<n>`: the n-th of this grant. */
export interface TakeBack {
  kind: "takeBack";
  /** The grant's own id. */
  grantId: string;
  /** The number of the grant's entry. */
  entry: number;
  /** Chosen by the operator's tool. A repeat brings the same. */
  takeBackId: string;
  /** 1 or more. Undefined: all that is left of the grant. */
  amount?: bigint | undefined;
  /** Where less is free, all that is free is taken. Otherwise it is refused then. */
  upTo?: boolean | undefined;
}

/** The reason why nothing was changed. */
export interface Refused {
  kind: "refused";
  reason: Reason;
  metadata: Record<string, string>;
}

/** The result of an operation. `replayed`: it was recorded before, and nothing changed. */
export type Outcome =
  | { kind: "granted"; wallet: Wallet; replayed: boolean }
  /** `held`: the amount that was held when the hold was opened. */
  | { kind: "reserved"; state: "open" | "settled" | "released"; held: bigint; replayed: boolean }
  | { kind: "closed"; state: "settled" | "released"; charged: bigint; replayed: boolean }
  | { kind: "extended"; replayed: boolean }
  /** `entry`: the refund's number. */
  | { kind: "refunded"; wallet: Wallet; amount: bigint; entry: number; replayed: boolean }
  /** `amount`: what was taken. `entry`: the number of its entry. */
  | { kind: "takenBack"; wallet: Wallet; amount: bigint; entry: number; replayed: boolean }
  | { kind: "drawn"; charged: bigint; replayed: boolean }
  | Refused;

/** The operation id that records a release. */
export function closeSlot({ holdId, isLapse }: Pick<Release, "holdId" | "isLapse">): string {
  return isLapse ? operationIds.lapse(holdId) : operationIds.close(holdId);
}
