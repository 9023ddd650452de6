// Turns the documents of the ledger in MongoDB into wallets, holds, keys and entries, and back. `store-mongo-schema.ts` declares
// them.

import type { Periods } from "../base/periods.ts";
import type {
  EntryDocument,
  HoldDocument,
  JournalDocument,
  KeyDocument,
  MonthDocument,
  PeriodDocument,
  TailDocument,
  WalletDocument,
} from "./store-mongo-schema.ts";
import {
  type Entry,
  holdIdOf,
  type KeyCounter,
  type KeyTotals,
  type OpenHold,
  packedRef,
  type Unit,
  unpackedRef,
  type Wallet,
  type WalletRef,
} from "./wallet.ts";

/** Figures of a wallet document, in the form that a read of balances gets. */
export type WalletFigures = Omit<WalletDocument, "v" | "keys" | "holds" | "tail" | "dueAt">;

/** Replaces a stored value that is no amount. No amount can have this value, and it breaks every law that it meets. */
const noAmount = -(2n ** 63n);

/** The wallet of a name. An empty account where it is no wallet's name. */
export function refOfName(name: string): WalletRef {
  const [, accountId, unit] = /^([^/]+)\/(usd_micros|credits)$/.exec(name) ?? [];
  return accountId === undefined
    ? { accountId: "", unit: "usd_micros" }
    : { accountId, unit: unit as Unit };
}

export function walletOf(doc: WalletFigures): Wallet {
  return {
    ...refOfName(doc._id),
    granted: amountOf(doc.granted),
    free: amountOf(doc.free),
    held: amountOf(doc.held),
    spent: amountOf(doc.spent),
    month: monthOf(doc.month),
    openHolds: Number(doc.openHolds),
    n: Number(doc.n),
    at: Number(doc.at),
    hash: String(doc.h),
  };
}

/** The fields of a document from which {@link walletOf} makes the same wallet. */
export function walletFields(wallet: Wallet): Omit<WalletFigures, "_id"> {
  return {
    granted: wallet.granted,
    free: wallet.free,
    held: wallet.held,
    spent: wallet.spent,
    month: monthDocument(wallet.month),
    openHolds: wallet.openHolds,
    n: wallet.n,
    at: wallet.at,
    h: wallet.hash,
  };
}

export function holdsOf(docs: Record<string, HoldDocument> | undefined): OpenHold[] {
  return Object.entries(docs ?? {}).map(([holdId, doc]) => ({
    holdId,
    amount: amountOf(doc.amount),
    holdKind: doc.kind,
    keyId: String(doc.keyId),
    ref: String(doc.ref),
    openedAt: Number(doc.openedAt),
    checkAt: Number(doc.checkAt),
    extensions: Number(doc.extensions),
  }));
}

export function holdDocument(hold: OpenHold): HoldDocument {
  const { holdId: _name, holdKind, ...rest } = hold;
  return { ...rest, kind: holdKind };
}

export function keysOf(docs: Record<string, KeyDocument> | undefined): KeyCounter[] {
  return Object.entries(docs ?? {}).map(([keyId, doc]) => ({
    keyId,
    month: monthOf(doc),
    held: amountOf(doc.held),
    totals: totalsOf(doc),
  }));
}

export function keyDocument({ month, held, totals }: KeyCounter): KeyDocument {
  return { ...monthDocument(month), held, ...totalsFields(totals) };
}

function totalsOf({ day, week, ever }: KeyDocument): KeyTotals | undefined {
  if (!day || !week || ever === undefined) return undefined;
  return { day: periodsOf(day), week: periodsOf(week), ever: amountOf(ever) };
}

function totalsFields(totals: KeyTotals | undefined): Pick<KeyDocument, "day" | "week" | "ever"> {
  if (!totals) return {};
  const { day, week, ever } = totals;
  return { day: periodsDocument(day), week: periodsDocument(week), ever };
}

function periodsOf({ p, spent, last }: PeriodDocument): Periods {
  return {
    period: String(p),
    spent: amountOf(spent),
    last: last
      ? { period: String(last.p), spent: amountOf(last.spent) }
      : { period: "", spent: 0n },
  };
}

function periodsDocument({ period, spent, last }: Periods): PeriodDocument {
  return {
    p: period,
    spent,
    ...(last.period === "" ? {} : { last: { p: last.period, spent: last.spent } }),
  };
}

function monthOf(doc: MonthDocument | undefined): Periods {
  const last = doc?.last;
  return {
    period: String(doc?.ym),
    spent: amountOf(doc?.spent),
    last: last
      ? { period: String(last.ym), spent: amountOf(last.spent) }
      : { period: "", spent: 0n },
  };
}

function monthDocument({ period, spent, last }: Periods): MonthDocument {
  return {
    ym: period,
    spent,
    ...(last.period === "" ? {} : { last: { ym: last.period, spent: last.spent } }),
  };
}

export function tailEntryOf(doc: TailDocument): Entry {
  return entryOf(String(doc.op), doc);
}

export function journalEntryOf(doc: JournalDocument): Entry {
  // No wallet's name has a colon.
  return entryOf(doc._id.slice(doc._id.indexOf(":") + 1), doc);
}

export function tailDocument(entry: Entry): TailDocument {
  return { op: entry.operationId, ...entryDocument(entry) };
}

export function journalDocument(wallet: string, entry: Entry): JournalDocument {
  return { _id: journalId(wallet, entry.operationId), wallet, ...entryDocument(entry) };
}

/** The id of an operation's entry in the journal. */
export function journalId(wallet: string, operationId: string): string {
  return `${wallet}:${operationId}`;
}

function entryOf(operationId: string, doc: EntryDocument): Entry {
  return {
    n: Number(doc.n),
    operationId,
    kind: doc.kind,
    holdId: holdIdOf(operationId),
    holdKind: doc.holdKind,
    keyId: String(doc.keyId),
    amount: amountOf(doc.amount),
    freeDelta: amountOf(doc.dFree),
    heldDelta: amountOf(doc.dHeld),
    spentDelta: amountOf(doc.dSpent),
    ...unpackedRef(String(doc.ref)),
    at: Number(doc.at),
    checkAt: Number(doc.checkAt),
    hash: String(doc.h),
  };
}

function entryDocument(entry: Entry): EntryDocument {
  return {
    n: entry.n,
    kind: entry.kind,
    holdKind: entry.holdKind,
    keyId: entry.keyId,
    amount: entry.amount,
    dFree: entry.freeDelta,
    dHeld: entry.heldDelta,
    dSpent: entry.spentDelta,
    ref: packedRef(entry),
    at: entry.at,
    checkAt: entry.checkAt,
    h: entry.hash,
  };
}

/** A stored amount. */
export function amountOf(value: unknown): bigint {
  if (typeof value === "bigint") return value;
  // A number that an operator wrote in a MongoDB shell is a double.
  return Number.isSafeInteger(value) ? BigInt(value as number) : noAmount;
}
