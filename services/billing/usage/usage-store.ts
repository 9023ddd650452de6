import type { Unit, WalletRef } from "../ledger/wallet.ts";
import type {
  CountedEntries,
  Line,
  LineKind,
  UsageCursor,
  UsageKind,
  UsageSlot,
  UsageSums,
} from "./usage.ts";

/**
 * What was made of the journals: an hourly rollup by key, kind and model, and a line for each request, job, grant and
 * refund. Each entry of a journal is in it once or not yet. Methods refuse with SERVICE_UNAVAILABLE where the store is away.
 */
export interface UsageStore {
  /** Makes tables, collections and indexes. To be called once, before all else. */
  open(): Promise<void>;
  /** How far a wallet's journal is counted; all up to that is in what is read after it. */
  cursor(wallet: WalletRef): Promise<UsageCursor>;
  /**
   * Adds what entries after `before` come to. Any number of callers and processes may count the same entries, in pieces of any size: each
   * counts once. Where it rejects, the outcome is unknown: count again from where {@link cursor} stands.
   */
  count(wallet: WalletRef, before: UsageCursor, counted: CountedEntries): Promise<void>;
  /** What keys were ever charged in a wallet, those of them that were charged; undefined: all keys. */
  keyTotals(wallet: WalletRef, keyIds?: readonly string[]): Promise<KeyTotal[]>;
  /** Some wallets, of which those whose journal goes on after its cursor are named; `next` undefined: these were the last. */
  behind(after: string | undefined): Promise<{ wallets: WalletRef[]; next: string | undefined }>;
  /** What is in a time, as the rollup has it. */
  groups(query: GroupQuery): Promise<UsageGroup[]>;
  /** Lines of an account, in the order of their times. Reads what is on the page, or some thousands where few fit. */
  lines(query: LineQuery): Promise<LinePage>;
  /** The newest line that has this public id, or this id of a caller's request. */
  find(accountId: string, keyId: string | undefined, id: string): Promise<Line | undefined>;
  /** A wallet's rows of the rollup, by pages, for an audit: each says up to which of its entries it counts. */
  rows(wallet: WalletRef): AsyncIterable<readonly UsageRow[]>;
}

/** All that a key was ever charged in a wallet. */
export interface KeyTotal {
  keyId: string;
  /** In the wallet's unit; what was given back is taken off. */
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

/** What of an account's rollup is added up. */
export interface GroupQuery {
  accountId: string;
  /** Seconds since the epoch, multiples of the width; `until` is not in it. */
  from: number;
  until: number;
  /** Of a bucket, in seconds: a multiple of an hour. */
  width: number;
  /** Undefined: all. */
  keyIds?: readonly string[] | undefined;
  models?: readonly string[] | undefined;
  kinds?: readonly UsageKind[] | undefined;
  byKey: boolean;
  byModel: boolean;
  byKind: boolean;
}

/** Sums of one key, model and kind in a bucket, or of all where it is empty. One of each unit. */
export interface UsageGroup {
  /** Where its bucket begins. */
  start: number;
  unit: Unit;
  keyId: string;
  model: string;
  kind: UsageKind | "";
  sums: UsageSums;
}

/** Where a line stands among an account's: by time, then unit, then number. */
export interface LinePlace {
  at: number;
  unit: Unit;
  n: number;
}

/** Which lines. */
export interface LineQuery {
  accountId: string;
  /** Undefined: all. */
  keyId?: string | undefined;
  model?: string | undefined;
  status?: string | undefined;
  kinds?: readonly LineKind[] | undefined;
  /** Only those whose amount is not 0. */
  onlyMoney?: boolean | undefined;
  /** Only older ones than this. */
  after?: LinePlace | undefined;
  /** Only newer ones than this, and of them the oldest; not beside `after`. */
  before?: LinePlace | undefined;
  limit: number;
}

/** Some lines. */
export interface LinePage {
  /** Newest first. */
  lines: Line[];
  /** Where the search goes on, in its direction; undefined where nothing is left. */
  next: LinePlace | undefined;
}

/** What a search for lines goes along: the filter that leaves the fewest. The others are looked at line by line. */
export type LineIndex = "key" | "model" | "status" | "kind" | "all";

/** Of these two most lines are: no index has them. */
export const usualStatus = "completed";
export const usualKind: LineKind = "text";

/** The index that a query goes along. */
export function indexFor({ keyId, model, status, kinds }: LineQuery): LineIndex {
  if (status !== undefined && status !== usualStatus) return "status";
  if (kinds?.length === 1 && kinds[0] !== usualKind) return "kind";
  if (keyId !== undefined) return "key";
  return model === undefined ? "all" : "model";
}

/** Does a line fit what no index saw to? */
export function fitsQuery(line: Line, query: LineQuery): boolean {
  const { keyId, model, status, kinds, onlyMoney } = query;
  return (
    (keyId === undefined || line.keyId === keyId) &&
    (model === undefined || line.model === model) &&
    (status === undefined || line.status === status) &&
    (kinds === undefined || kinds.includes(line.kind)) &&
    (!onlyMoney || line.amount !== 0n)
  );
}

/** A line's place. */
export function placeOf({ at, wallet: { unit }, n }: Line): LinePlace {
  return { at, unit, n };
}
