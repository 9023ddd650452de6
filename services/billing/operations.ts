import type { Reason } from "#kit/errors.ts";
import { type HoldKind, operationIds, type Wallet } from "./wallet.ts";

/** Something that is to happen to one wallet. Well-formed: the rules of the wire were checked before. */
export type Operation = Grant | Reserve | Settle | Release | Extend;

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
  /** USD micros, spent and held of the month together; undefined: none. No part of the content: a repeat may differ. */
  keyMonthlyLimit?: bigint | undefined;
  /** 0 up to the amount: where wallet or key have less, the hold takes what they have, from this on. Undefined: all of it. */
  least?: bigint | undefined;
}

/** Ends a hold by charging min(amount, hold). Operation id `<hold>:close`. */
export interface Settle {
  kind: "settle";
  holdId: string;
  /** 0 or more. */
  amount: bigint;
  /** The operator's: an amount above the hold is refused, where an owner's is cut to it. */
  withinHold?: boolean | undefined;
}

/** Ends a hold without a charge. Operation id `<hold>:close`, as of a settlement. */
export interface Release {
  kind: "release";
  holdId: string;
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
  | Refused;

/** Under what an operation's entry is found. */
export function operationIdOf(operation: Operation): string {
  switch (operation.kind) {
    case "grant":
      return operationIds.grant(operation.grantId);
    case "reserve":
      return operationIds.open(operation.holdId);
    case "settle":
    case "release":
      return operationIds.close(operation.holdId);
    case "extend":
      return operationIds.extend(operation.holdId, operation.step);
  }
}
