import { monthOf } from "#kit/money.ts";
import { maxClockLagMs } from "./limits.ts";

/** Months of UTC begin with a day. */
const dayMs = 86_400_000;

/** What a wallet counts. */
export type Unit = "usd_micros" | "credits";
/** What a hold stands for, and so who is asked about it. */
export type HoldKind = "text" | "speech" | "job";
/** What an entry of the journal did. */
export type EntryKind = "grant" | "hold" | "settle" | "release" | "extend";

/** Whose wallet. */
export interface WalletRef {
  /** 1 to 64 characters of [A-Za-z0-9_-]. */
  accountId: string;
  unit: Unit;
}

/**
 * A wallet as its entries left it. Law: `free + held + spent === granted`, each 0 or more. Amounts are in the wallet's
 * unit.
 */
export interface Wallet extends WalletRef {
  /** All that was ever put in. */
  granted: bigint;
  /** What a new hold may take. */
  free: bigint;
  /** The sum of the open holds. */
  held: bigint;
  /** All that was ever charged. */
  spent: bigint;
  /** "2026-11": the month (UTC) of the last entry; "" before the first. */
  month: string;
  /** Charged in {@link month}. */
  monthSpent: bigint;
  /** The month that counted before this one: it counts on when a clock comes back that was ahead. */
  lastMonth: MonthTotal;
  /** How many holds are open. */
  openHolds: number;
  /** Number of the last entry; 0 before the first. */
  n: number;
  /** Time of the last entry, in ms since the epoch; 0 before the first. */
  at: number;
  /** Hash of the last entry; "" before the first. */
  hash: string;
}

/** What was charged in a month (UTC). */
export interface MonthTotal {
  /** "2026-11"; "" for none. */
  month: string;
  spent: bigint;
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

/** What a key did in its account's USD wallet: the counters behind its monthly limit. */
export interface KeyCounter {
  keyId: string;
  /** The month (UTC) of the key's last entry. */
  month: string;
  /** Charged in {@link month}. */
  spent: bigint;
  /** As in {@link Wallet}. */
  lastMonth: MonthTotal;
  /** The sum of the key's open holds, whenever they were opened: their charges would fall in the running month. */
  held: bigint;
}

/** One line of a wallet's journal. Entries are only ever added. */
export interface Entry {
  /** Its place in the journal, from 1 without gaps. */
  n: number;
  /** The operation that made it, unique in the wallet. */
  operationId: string;
  kind: EntryKind;
  /** The hold that it opened, changed or ended; "" for grants. */
  holdId: string;
  /** Of that hold; "" for grants. */
  holdKind: HoldKind | "";
  /** The key that pays; "" for grants. */
  keyId: string;
  /** What the operation named: for a settlement what was asked for, which may be above what was charged. */
  amount: bigint;
  freeDelta: bigint;
  heldDelta: bigint;
  spentDelta: bigint;
  /** The job or request; "" for grants. */
  ref: string;
  /** In ms since the epoch; before the entry above it only where that one's clock was wrong: see {@link entryTime}. */
  at: number;
  /** The check time that it set, in ms since the epoch; 0 where it sets none. */
  checkAt: number;
  /** SHA-256 over the entry and the hash before it, lower-case hexadecimal. */
  hash: string;
}

/** Ids of operations: settle and release share one slot, so a hold ends once. No hold is called "grant": too short. */
export const operationIds = {
  open: (holdId: string) => `${holdId}:open`,
  close: (holdId: string) => `${holdId}:close`,
  /** `step` counts from 1. */
  extend: (holdId: string, step: number) => `${holdId}:extend:${step}`,
  grant: (grantId: string) => `grant:${grantId}`,
};

/** The hold in an operation id; "" in that of a grant. */
export function holdIdOf(operationId: string): string {
  const colon = operationId.indexOf(":");
  const head = operationId.slice(0, colon);
  return head === "grant" ? "" : head;
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
    month: "",
    monthSpent: 0n,
    lastMonth: noMonth,
    openHolds: 0,
    n: 0,
    at: 0,
    hash: "",
  };
}

const noMonth: MonthTotal = { month: "", spent: 0n };

/**
 * The time that an entry made now gets: the clock's, or that of the wallet's last entry, where the clock is a little behind.
 * One that is far behind was set right: the last entry's was ahead, and its month must not count until it has really come.
 */
export function entryTime(wallet: Wallet, now: number): number {
  return now < wallet.at && wallet.at - now <= maxClockLagMs ? wallet.at : now;
}

/** The month (UTC) of a time in ms since the epoch. Remembers the last one: it is asked for at every entry. */
const monthAt = (() => {
  let day = Number.NaN;
  let month = "";
  return (ms: number): string => {
    const asked = Math.floor(ms / dayMs);
    if (asked !== day) {
      day = asked;
      month = monthOf(ms);
    }
    return month;
  };
})();

/** What was charged in the month of `now`: 0 where none of the last entries is of it. */
export function spentThisMonth(wallet: Wallet, now: number): bigint {
  const { month, monthSpent: spent, lastMonth } = wallet;
  return spentIn(monthAt(entryTime(wallet, now)), { month, spent, lastMonth });
}

type Months = MonthTotal & { lastMonth: MonthTotal };

function spentIn(month: string, months: Months): bigint {
  if (month === months.month) return months.spent;
  return month === months.lastMonth.month ? months.lastMonth.spent : 0n;
}

/** The totals after a charge in a month: another than that which counted is begun, or counts on. */
function chargedIn(month: string, charge: bigint, months: Months): Months {
  const spent = spentIn(month, months) + charge;
  if (month === months.month) return { month, spent, lastMonth: months.lastMonth };
  return { month, spent, lastMonth: { month: months.month, spent: months.spent } };
}

/** The wallet after an entry that {@link advanceHold} and the law allow. */
export function advanceWallet(wallet: Wallet, entry: Entry): Wallet {
  const { month, monthSpent: spent, lastMonth } = wallet;
  const months = chargedIn(monthAt(entry.at), entry.spentDelta, { month, spent, lastMonth });
  const opened = entry.kind === "hold" ? 1 : 0;
  const closed = entry.kind === "settle" || entry.kind === "release" ? 1 : 0;
  return {
    accountId: wallet.accountId,
    unit: wallet.unit,
    granted: entry.kind === "grant" ? wallet.granted + entry.freeDelta : wallet.granted,
    free: wallet.free + entry.freeDelta,
    held: wallet.held + entry.heldDelta,
    spent: wallet.spent + entry.spentDelta,
    month: months.month,
    monthSpent: months.spent,
    lastMonth: months.lastMonth,
    openHolds: wallet.openHolds + opened - closed,
    n: entry.n,
    at: entry.at,
    hash: entry.hash,
  };
}

/** The hold of an entry after it; undefined where it ended, or there is none. */
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

/** What a key was charged in the month of `at`: 0 where none of its last entries is of it. */
export function keySpentThisMonth(counter: KeyCounter, at: number): bigint {
  return spentIn(monthAt(at), counter);
}

/** A key's counters after an entry that {@link countsForKey}: a new month begins with what is still held. */
export function advanceKey(counter: KeyCounter | undefined, entry: Entry): KeyCounter {
  const before = counter ?? { ...noMonth, lastMonth: noMonth };
  return {
    keyId: entry.keyId,
    ...chargedIn(monthAt(entry.at), entry.spentDelta, before),
    held: (counter?.held ?? 0n) + entry.heldDelta,
  };
}
