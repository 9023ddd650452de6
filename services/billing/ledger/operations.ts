import type { Reason } from "#kit/base/errors.ts";
import {
  type HoldKind,
  type KeyLimit,
  type KeyTotals,
  operationIds,
  type Wallet,
} from "./wallet.ts";

/** Something that is to happen to one wallet. Well-formed: the rules of the wire were checked before. */
export type Operation = Grant | Reserve | Settle | Release | Extend | Draw | Refund;

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
  /** When its owner is asked if it is still open, in ms since the epoch. */
  checkAt: number;
  /** Of the key; undefined: none. No part of the content: a repeat may differ. */
  keyLimit?: KeyLimit | undefined;
  keyTotals?: ToldTotals | undefined;
  /** 0 up to the amount: where wallet or key have less, the hold takes what they have, from this on. Undefined: all of it. */
  least?: bigint | undefined;
}

/** Where an earlier release wrote some of a key's entries: what they come to, up to one of them. No part of the content. */
export interface ToldTotals {
  totals: KeyTotals;
  /** Number of the wallet's last entry that was looked at. */
  upTo: number;
}

/** Ends a hold by charging min(amount, hold). Operation id `<hold>:close`. */
export interface Settle {
  kind: "settle";
  holdId: string;
  /** 0 or more. */
  amount: bigint;
  /** What the journal says of what was paid for: JSON; undefined or empty where its owner does not say. */
  record?: string | undefined;
  /** The operator's: an amount above the hold is refused, where an owner's is cut to it. */
  withinHold?: boolean | undefined;
}

/** Ends a hold without a charge. Operation id `<hold>:close`, as of a settlement. */
export interface Release {
  kind: "release";
  holdId: string;
  /** Its lease is over and its owner knows of no charge. Operation id `<hold>:lapse`: the charge is not decided by it. */
  isLapse?: boolean | undefined;
  /** As of a settlement. */
  record?: string | undefined;
}

/**
 * Charges a request and ends its hold. Operation id `charge:<hold>`: the first wins, and is recorded also where it is more than the wallet
 * has, so that every repeat reads the same charge. It is never refused.
 */
export interface Draw {
  kind: "draw";
  holdId: string;
  /** 0 or more; what is above the hold is not charged. */
  amount: bigint;
  /** The key that pays, where the hold is closed. */
  keyId: string;
  /** What the journal says of the request: JSON. */
  record: string;
  /**
   * Where the hold was closed before: the charge is taken out of what is free, if wallet and key have all of it. Undefined:
   * nothing is charged then.
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

/**
 * Gives a request's or job's charge back. Operation id `refund:<hold>`: a charge is given back once, all of it or a part.
 */
export interface Refund {
  kind: "refund";
  /** Of the charge. */
  holdId: string;
  /** The number of the charge's entry. */
  entry: number;
  /** Chosen by the operator's tool: a repeat brings the same. */
  refundId: string;
  /** 1 or more; undefined: all that was charged. */
  amount?: bigint | undefined;
}

/** Why nothing was changed. */
export interface Refused {
  kind: "refused";
  reason: Reason;
  metadata: Record<string, string>;
}

/** What became of an operation. `replayed`: it was known, and nothing changed. */
export type Outcome =
  | { kind: "granted"; wallet: Wallet; replayed: boolean }
  /** `held`: what was set aside when the hold was opened. */
  | { kind: "reserved"; state: "open" | "settled" | "released"; held: bigint; replayed: boolean }
  | { kind: "closed"; state: "settled" | "released"; charged: bigint; replayed: boolean }
  | { kind: "extended"; replayed: boolean }
  /** `entry`: the refund's number. */
  | { kind: "refunded"; wallet: Wallet; amount: bigint; entry: number; replayed: boolean }
  | { kind: "drawn"; charged: bigint; replayed: boolean }
  | Refused;

/** Under what a release is recorded. */
export function closeSlot({ holdId, isLapse }: Pick<Release, "holdId" | "isLapse">): string {
  return isLapse ? operationIds.lapse(holdId) : operationIds.close(holdId);
}
