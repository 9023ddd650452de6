// Says what a wallet, a hold, a key's counters and an entry are, and how an entry changes each of them. Ledger, audit and both
// stores compute by these functions, so that they agree. `ledger.ts` decides which entries there are.

import { maxClockLagMs } from "../base/limits.ts";
import {
  type LimitPeriod,
  noPeriods,
  type Periods,
  periodsAfter,
  periodsAt,
  spentInPeriod,
} from "../base/periods.ts";

/** The unit of a wallet. */
export type Unit = "usd_micros" | "credits";
/** The units of an account's two wallets. */
export const units: readonly Unit[] = ["usd_micros", "credits"];
/** The work that a hold is for. It decides which service is asked about it. */
export type HoldKind = "text" | "speech" | "job";
/** The effect of an entry of the journal. */
export type EntryKind = "grant" | "hold" | "settle" | "release" | "extend" | "draw" | "refund";

/** Names a wallet. */
export interface WalletRef {
  /** 1 to 64 characters of [A-Za-z0-9_-]. */
  accountId: string;
  unit: Unit;
}

/** A wallet after its entries. Law: `free + held + spent === granted`, each 0 or more. Amounts are in the wallet's unit. */
export interface Wallet extends WalletRef {
  /** All that was ever granted, less what was taken back. */
  granted: bigint;
  /** The amount that new holds may take. */
  free: bigint;
  /** The sum of the open holds. */
  held: bigint;
  /** All that was ever charged. */
  spent: bigint;
  /** The charges of the month of the last entry, and of the month before. */
  month: Periods;
  /** The number of open holds. */
  openHolds: number;
  /** Number of the last entry. 0 before the first. */
  n: number;
  /** Time of the last entry, in ms since the epoch. 0 before the first. */
  at: number;
  /** Hash of the last entry. "" before the first. */
  hash: string;
}

/** An open hold. */
export interface OpenHold {
  holdId: string;
  amount: bigint;
  holdKind: HoldKind;
  /** The key that pays. */
  keyId: string;
  /** The job or request. */
  ref: string;
  /** In ms since the epoch. */
  openedAt: number;
  /** When its owner is asked next, in ms since the epoch. */
  checkAt: number;
  /** How often its check time was moved. */
  extensions: number;
}

/** A key's limit: the most that it may have charged and held in a period, in USD micros. */
export interface KeyLimit {
  amount: bigint;
  period: LimitPeriod;
}

/** A key's charges and holds in its account's USD wallet: the counters behind its limit. */
export interface KeyCounter {
  keyId: string;
  /** The charges of the month of the key's last entry, and of the month before. */
  month: Periods;
  /** The sum of the key's open holds, from any period. Their charges would count to the present period. */
  held: bigint;
  /** Undefined: an earlier release wrote some of the key's entries, and they were not added up yet. */
  totals: KeyTotals | undefined;
}

/** A key's charges beside its months. */
export interface KeyTotals {
  day: Periods;
  week: Periods;
  /** All that was ever charged. */
  ever: bigint;
}

/** One line of a wallet's journal. Entries are only ever added. */
export interface Entry {
  /** Its place in the journal, from 1 without gaps. */
  n: number;
  /** The operation that made it, unique in the wallet. */
  operationId: string;
  kind: EntryKind;
  /**
   * The hold that it opened, changed or ended. For a `draw`: the hold of its request, open or not. For a refund: the hold of its
   * charge. "" for grants.
   */
  holdId: string;
  /** The kind of that hold, for a refund that of its charge. "" for grants, and for a `draw` that found its hold closed. */
  holdKind: HoldKind | "";
  /** The key that pays. "" for grants. */
  keyId: string;
  /**
   * The amount of the operation. For a settlement this is the requested amount, which may be above the charge. For a grant that was
   * taken back it is below 0.
   */
  amount: bigint;
  freeDelta: bigint;
  heldDelta: bigint;
  spentDelta: bigint;
  /** The job or request. For a refund, or a grant taken back: the operator's id of it. "" for other grants. */
  ref: string;
  /**
   * The record of a request in its `draw`, of a charge in its refund ({@link ChargeTold}), or of a grant in its taking back
   * ({@link takeBackOf}), as JSON. "" for all others.
   */
  record: string;
  /** In ms since the epoch. It is before that of an earlier entry only where that one's clock was wrong: see {@link entryTime}. */
  at: number;
  /** The check time that it set, in ms since the epoch. 0 where it sets none. */
  checkAt: number;
  /** SHA-256 over the entry and the hash before it, lower-case hexadecimal. */
  hash: string;
}

/**
 * Ids of operations. Settle and release share one slot, so a hold ends once. No hold is called "grant", "charge" or "refund", which are
 * too short.
 */
export const operationIds = {
  open: (holdId: string) => `${holdId}:open`,
  close: (holdId: string) => `${holdId}:close`,
  /** A request's charge. There is one slot for each wallet and request, whether or not its hold is still open. */
  charge: (holdId: string) => `charge:${holdId}`,
  /** Its lease was over, and its owner knew of no charge. Other than a close, it does not decide the charge. */
  lapse: (holdId: string) => `${holdId}:lapse`,
  /** A charge is given back. There is one slot for each charge. */
  refund: (holdId: string) => `refund:${holdId}`,
  /** `step` counts from 1. */
  extend: (holdId: string, step: number) => `${holdId}:extend:${step}`,
  grant: (grantId: string) => `grant:${grantId}`,
  /** `step` counts the times that this grant was taken back, from 1. No grant's id has a slash. */
  takeBack: (entry: number, step: number) => `grant:take-back/${entry}/${step}`,
};

/** The hold in an operation id. "" in that of a grant, or of taking one back. */
export function holdIdOf(operationId: string): string {
  const colon = operationId.indexOf(":");
  const head = operationId.slice(0, colon);
  if (head === "charge" || head === "refund") return operationId.slice(colon + 1);
  return head === "grant" ? "" : head;
}

/** An entry's `ref` in the form that is hashed and stored. Its record follows behind a line break, which no ref has. */
export function packedRef({ ref, record }: Pick<Entry, "ref" | "record">): string {
  return record === "" ? ref : `${ref}\n${record}`;
}

/** The parts of a {@link packedRef}. */
export function unpackedRef(packed: string): Pick<Entry, "ref" | "record"> {
  const at = packed.indexOf("\n");
  return at < 0
    ? { ref: packed, record: "" }
    : { ref: packed.slice(0, at), record: packed.slice(at + 1) };
}

/** The name under which a wallet is stored: no account id has a slash. */
export function walletName(wallet: WalletRef): string {
  return `${wallet.accountId}/${wallet.unit}`;
}

/** A wallet before its first entry. */
export function emptyWallet({ accountId, unit }: WalletRef): Wallet {
  return {
    accountId,
    unit,
    granted: 0n,
    free: 0n,
    held: 0n,
    spent: 0n,
    month: noPeriods,
    openHolds: 0,
    n: 0,
    at: 0,
    hash: "",
  };
}

/**
 * The time of an entry that is made now: the clock's, or that of the wallet's last entry where the clock is a little behind. A clock
 * that is far behind was corrected. Then the last entry's clock was ahead, and its month must not count before it really comes.
 */
export function entryTime(wallet: Wallet, now: number): number {
  return now < wallet.at && wallet.at - now <= maxClockLagMs ? wallet.at : now;
}

/** The charges of the month of `now`. 0 where none of the last entries is of it. */
export function spentThisMonth(wallet: Wallet, now: number): bigint {
  return spentInPeriod(periodsAt(entryTime(wallet, now)).month, wallet.month);
}

/** A refund's record of the charge that it gives back. */
export interface ChargeTold {
  /** The number of its entry. */
  refundOf: number;
  /** When the charge was made, in ms since the epoch. */
  chargedMs: number;
  /** The model of its request, where its entry has it. */
  model?: string;
  operation?: string;
  answerId?: string;
  /** The upstream that answered. */
  upstream?: string;
  /** The cost of the request at the upstream is known. */
  isCosted?: true;
}

/** A refund's record of its charge. Undefined for all other entries, and where it cannot be read. */
export function chargeTold({
  kind,
  record,
}: {
  kind: string;
  record: string;
}): ChargeTold | undefined {
  if (kind !== "refund") return undefined;
  try {
    const told: ChargeTold = JSON.parse(record);
    const fits = Number.isSafeInteger(told.refundOf) && Number.isFinite(told.chargedMs);
    return fits ? told : undefined;
  } catch {
    return undefined;
  }
}

/** The number of the grant that an entry takes back. Undefined for all other entries, and where it cannot be read. */
export function takeBackOf({
  kind,
  amount,
  record,
}: {
  kind: string;
  amount: bigint;
  record: string;
}): number | undefined {
  if (kind !== "grant" || amount >= 0n) return undefined;
  try {
    const { takeBackOf }: { takeBackOf?: unknown } = JSON.parse(record);
    return Number.isSafeInteger(takeBackOf) ? Number(takeBackOf) : undefined;
  } catch {
    return undefined;
  }
}

/** The time to which an entry's charge counts, in ms since the epoch. A refund lowers the charges of the time of its charge. */
export function countedAt(entry: Entry): number {
  return chargeTold(entry)?.chargedMs ?? entry.at;
}

/** For a refund: the time of the charge that it gives back. */
function refundedAt(entry: Entry): number | undefined {
  return entry.kind === "refund" ? countedAt(entry) : undefined;
}

/** The totals of a key without entries. */
export const noTotals: KeyTotals = { day: noPeriods, week: noPeriods, ever: 0n };

/** A key's totals after one of its entries. */
export function advanceTotals(totals: KeyTotals, entry: Entry): KeyTotals {
  const refunded = refundedAt(entry);
  return {
    day: periodsAfter(entry, refunded, totals.day, "day"),
    week: periodsAfter(entry, refunded, totals.week, "week"),
    ever: totals.ever + entry.spentDelta,
  };
}

/** The wallet after an entry that {@link advanceHold} and the law allow. */
export function advanceWallet(wallet: Wallet, entry: Entry): Wallet {
  const { kind, holdKind } = entry;
  // A `draw` that found its hold closed names no kind of hold.
  const isEnd = kind === "settle" || kind === "release" || (kind === "draw" && holdKind !== "");
  const opened = kind === "hold" ? 1 : 0;
  return {
    accountId: wallet.accountId,
    unit: wallet.unit,
    granted: entry.kind === "grant" ? wallet.granted + entry.freeDelta : wallet.granted,
    free: wallet.free + entry.freeDelta,
    held: wallet.held + entry.heldDelta,
    spent: wallet.spent + entry.spentDelta,
    month: periodsAfter(entry, refundedAt(entry), wallet.month, "month"),
    openHolds: wallet.openHolds + opened - (isEnd ? 1 : 0),
    n: entry.n,
    at: entry.at,
    hash: entry.hash,
  };
}

/** The hold of an entry after it. Undefined where it ended, or where there is none. */
export function advanceHold(hold: OpenHold | undefined, entry: Entry): OpenHold | undefined {
  if (entry.kind === "hold" && entry.holdKind !== "") {
    return {
      holdId: entry.holdId,
      amount: entry.heldDelta,
      holdKind: entry.holdKind,
      keyId: entry.keyId,
      ref: entry.ref,
      openedAt: entry.at,
      checkAt: entry.checkAt,
      extensions: 0,
    };
  }
  if (entry.kind === "extend" && hold) {
    return { ...hold, checkAt: entry.checkAt, extensions: hold.extensions + 1 };
  }
  return undefined;
}

/** Does an entry count for a key? Limits are in USD, so the credit wallets keep no counters. */
export function countsForKey(unit: Unit, entry: Entry): boolean {
  return unit === "usd_micros" && entry.keyId !== "" && entry.kind !== "extend";
}

/** A key's charges in the month of `at`. 0 where none of its last entries is of it. */
export function keySpentThisMonth(counter: KeyCounter, at: number): bigint {
  return spentInPeriod(periodsAt(at).month, counter.month);
}

/** The same for a limit's period. Undefined where the key's totals are missing. */
export function keySpentIn(
  period: LimitPeriod,
  counter: KeyCounter,
  at: number,
): bigint | undefined {
  if (period === "month") return keySpentThisMonth(counter, at);
  const { totals } = counter;
  if (period === "ever" || !totals) return totals?.ever;
  return spentInPeriod(periodsAt(at)[period], totals[period]);
}

/** A key's counters after an entry that {@link countsForKey}. A new month begins with the amount that is still held. */
export function advanceKey(counter: KeyCounter | undefined, entry: Entry): KeyCounter {
  const { month, held, totals } = counter ?? newKey;
  return {
    keyId: entry.keyId,
    month: periodsAfter(entry, refundedAt(entry), month, "month"),
    held: held + entry.heldDelta,
    totals: totals && advanceTotals(totals, entry),
  };
}

const newKey = { month: noPeriods, held: 0n, totals: noTotals };
