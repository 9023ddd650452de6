// Declares the documents of usage in MongoDB, and turns them into lines and sums.

import { amountOf, refOfName } from "../ledger/store-mongo-docs.ts";
import { walletName } from "../ledger/wallet.ts";
import {
  type Line,
  type LineKind,
  type Sums,
  type UsageCursor,
  type UsageKind,
  zeros,
} from "./usage.ts";
import { type LinePlace, usualKind, usualStatus } from "./usage-store.ts";

/** How far a wallet's journal is counted. */
export interface CursorDocument {
  /** The name of the wallet. */
  _id: string;
  n: number;
  balance: bigint;
  /** See {@link UsageCursor}. Absent where only releases without totals have counted. */
  keysN?: number;
  /** The same for the rollup by upstream. */
  servedN?: number;
}

/** All charges of a key. Like a row of the rollup, it shows which of its entries it counts. */
export interface TotalDocument {
  /** `<wallet>:<key>`. */
  _id: string;
  n: number;
  spent: bigint;
}

/**
 * A row of a rollup, with its sums beside these fields. It shows itself which of its entries it counts, so an entry is counted once,
 * however often it is tried.
 */
export interface RowDocument {
  /** `<wallet>:<slot>`. */
  _id: string;
  account: string;
  wallet: string;
  hour: number;
  keyId: string;
  kind: UsageKind;
  model: string;
  /** Only in the rollup by upstream. */
  upstream?: string;
  /** The highest number among the entries that it counts. Compare-and-set uses it. */
  n: number;
}

/** A line of an account's journals. */
export interface LineDocument {
  /** `<wallet>:<number>`. */
  _id: string;
  account: string;
  wallet: string;
  n: number;
  at: number;
  /** Time, unit and number as one text that sorts in their order. */
  place: string;
  kind: LineKind;
  keyId: string;
  model: string;
  status: string;
  /** Status and kind where they are not the usual ones. Only these lines are in the indexes on them. */
  unusualStatus?: string;
  unusualKind?: LineKind;
  amount: bigint;
  balance: bigint;
  publicId?: string;
  requestId?: string;
  record: string;
}

/** The sums of a row, or of rows that the server added up. */
export function sumsOf<Name extends string>(names: readonly Name[], fields: object): Sums<Name> {
  const stored = fields as Sums<Name>;
  const sums = zeros(names);
  for (const name of names) sums[name] = amountOf(stored[name]);
  return sums;
}

/** Times and numbers with as many digits as they can ever have. */
export function placeText({ at, unit, n }: LinePlace): string {
  return `${String(at).padStart(15, "0")} ${unit} ${String(n).padStart(16, "0")}`;
}

/** The stored form of a line. */
export function lineDocument(line: Line): LineDocument {
  const { wallet, n, at, kind, keyId, model, status, publicId, requestId } = line;
  const name = walletName(wallet);
  return {
    _id: `${name}:${n}`,
    account: wallet.accountId,
    wallet: name,
    ...{ n, at, place: placeText({ at, unit: wallet.unit, n }), kind, keyId, model, status },
    ...(status === "" || status === usualStatus ? {} : { unusualStatus: status }),
    ...(kind === usualKind ? {} : { unusualKind: kind }),
    amount: line.amount,
    balance: line.balance,
    ...(publicId === "" ? {} : { publicId }),
    ...(requestId === "" ? {} : { requestId }),
    record: line.record,
  };
}

/** The line of a document. */
export function lineOf(doc: LineDocument): Line {
  return {
    wallet: refOfName(doc.wallet),
    n: Number(doc.n),
    at: Number(doc.at),
    kind: doc.kind,
    keyId: doc.keyId,
    model: doc.model,
    status: doc.status,
    amount: amountOf(doc.amount),
    balance: amountOf(doc.balance),
    publicId: doc.publicId ?? "",
    requestId: doc.requestId ?? "",
    record: doc.record,
  };
}
