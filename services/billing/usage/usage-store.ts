// Declares what a store of usage must promise, in SQLite and in MongoDB, and the queries that it answers.

import type { Unit, WalletRef } from "../ledger/wallet.ts";
import type { CountedEntries } from "./count-entries.ts";
import type { ServedSlot, ServedSums } from "./served.ts";
import type { Line, LineKind, UsageCursor, UsageKind, UsageSlot, UsageSums } from "./usage.ts";

/**
 * Usage made from the journals: an hourly rollup by key, kind and model, a second one by upstream too, and a line for each request, job,
 * grant and refund. Each entry of a journal is counted in each of them once or not yet. Methods refuse with SERVICE_UNAVAILABLE where
 * the store is away.
 */
export interface UsageStore {
  /** Makes tables, collections and indexes. To be called once, first of all. */
  open(): Promise<void>;
  /** How far a wallet's journal is counted. A read after it includes everything up to that. */
  cursor(wallet: WalletRef): Promise<UsageCursor>;
  /**
   * Adds the sums of the entries after `before`. Any number of callers and processes may count the same entries, in pieces of any size:
   * each counts once. Where it rejects, the outcome is unknown. Then count again from {@link cursor}.
   */
  count(wallet: WalletRef, before: UsageCursor, counted: CountedEntries): Promise<void>;
  /** All charges of these keys in a wallet, of those keys that were charged. Undefined: all keys. */
  keyTotals(wallet: WalletRef, keyIds?: readonly string[]): Promise<KeyTotal[]>;
  /** Checks some wallets, and names those whose journal goes on after its cursor. `next` undefined: these were the last. */
  behind(after: string | undefined): Promise<{ wallets: WalletRef[]; next: string | undefined }>;
  /** The rollup's sums in a time. */
  groups(query: GroupQuery): Promise<UsageGroup[]>;
  /** The sums of the rollup by upstream in a time. */
  served(query: ServedQuery): Promise<ServedGroup[]>;
  /** Lines of an account or of all, in the order of their times. Reads the lines of the page, or some thousands where few match. */
  lines(query: LineQuery): Promise<LinePage>;
  /** The newest line that has this public id, or this id of a caller's request. */
  find(accountId: string, keyId: string | undefined, id: string): Promise<Line | undefined>;
  /** The same of all accounts: newest first, at most some dozens. */
  findAll(id: string): Promise<Line[]>;
  /** A wallet's rows of the rollup, by pages, for an audit. Each shows up to which of its entries it counts. */
  rows(wallet: WalletRef): AsyncIterable<readonly UsageRow[]>;
  /** The same for the rollup by upstream. */
  servedRows(wallet: WalletRef): AsyncIterable<readonly ServedRow[]>;
}

/** All charges of a key in a wallet. */
export interface KeyTotal {
  keyId: string;
  /** In the wallet's unit. Refunds are subtracted. */
  spent: bigint;
  /** The highest number among the entries that it counts. */
  n: number;
}

/** A row of the rollup. */
export interface UsageRow {
  slot: UsageSlot;
  sums: UsageSums;
  /** The highest number among its entries that it counts. */
  n: number;
}

/** A row of the rollup by upstream. */
export interface ServedRow {
  slot: ServedSlot;
  sums: ServedSums;
  /** As in {@link UsageRow}. */
  n: number;
}

/** A query for sums of an account's rollup. */
export interface GroupQuery {
  accountId: string;
  /** Seconds since the epoch, multiples of the width. `until` is excluded. */
  from: number;
  until: number;
  /** Width of a bucket, in seconds: a multiple of an hour. */
  width: number;
  /** Undefined: all. */
  keyIds?: readonly string[] | undefined;
  models?: readonly string[] | undefined;
  kinds?: readonly UsageKind[] | undefined;
  byKey: boolean;
  byModel: boolean;
  byKind: boolean;
}

/** Sums of one key, model and kind in a bucket. An empty one means all. There is one of each unit. */
export interface UsageGroup {
  /** The start of its bucket. */
  start: number;
  unit: Unit;
  keyId: string;
  model: string;
  kind: UsageKind | "";
  sums: UsageSums;
}

/** A query for sums of the rollup by upstream. */
export interface ServedQuery extends Omit<GroupQuery, "accountId"> {
  /** Undefined: all accounts. Then the query has no filter. */
  accountId: string | undefined;
  byUpstream: boolean;
}

/** Sums of one key, model, kind and upstream in a bucket. An empty one means all, and an empty upstream also that none answered. */
export interface ServedGroup extends Omit<UsageGroup, "sums"> {
  upstream: string;
  sums: ServedSums;
}

/** The place of a line: by time, then unit, then number, then account. */
export interface LinePlace {
  at: number;
  unit: Unit;
  n: number;
  /** Absent: before all accounts. Lines of one account need none. */
  accountId?: string | undefined;
}

/** A query for lines. */
export interface LineQuery {
  /** Undefined: all. Then the lines are searched along their times, or by an unusual status or kind. */
  accountId: string | undefined;
  /** Undefined: all. */
  keyId?: string | undefined;
  model?: string | undefined;
  /** An upstream that answered, or at which a try failed. */
  upstream?: string | undefined;
  status?: string | undefined;
  kinds?: readonly LineKind[] | undefined;
  /** Only lines whose amount is not 0. */
  onlyMoney?: boolean | undefined;
  /** Only lines older than this. */
  after?: LinePlace | undefined;
  /** Only lines newer than this, and of them the oldest. Not together with `after`. */
  before?: LinePlace | undefined;
  /** Only lines beyond the first of these places and before the second one, in the order of time. */
  from?: LinePlace | undefined;
  until?: LinePlace | undefined;
  limit: number;
}

/** Some lines. */
export interface LinePage {
  /** Newest first. */
  lines: Line[];
  /** Where the search goes on, in its direction. Undefined where no line is left. */
  next: LinePlace | undefined;
}

/** Most lines have this status and this kind, so no index has those. */
export const usualStatus = "completed";
export const usualKind: LineKind = "text";

/** The order of places, by time. */
export function comparePlaces(a: LinePlace, b: LinePlace): number {
  if (a.at !== b.at) return a.at - b.at;
  if (a.unit !== b.unit) return a.unit < b.unit ? -1 : 1;
  return a.n - b.n || ((a.accountId ?? "") < (b.accountId ?? "") ? -1 : 1);
}

/** A line's place. */
export function placeOf({ at, wallet: { accountId, unit }, n }: Line): LinePlace {
  return { at, unit, n, accountId };
}
