// Declares what a ledger's store must promise, in SQLite and in MongoDB. `store-sqlite.ts` and `store-mongo.ts` keep the
// promises, and one contract test holds both to them.

import type { Operation, Outcome } from "./operations.ts";
import type { Entry, KeyCounter, OpenHold, Wallet, WalletRef } from "./wallet.ts";

/**
 * Wallets with their holds and journals. Every guarantee applies to any number of callers and processes. It survives the death of this
 * process at any moment. Methods refuse with SERVICE_UNAVAILABLE where the store is away.
 */
export interface LedgerStore {
  /** Makes tables, collections and indexes. To be called once, first of all. */
  open(): Promise<void>;
  /**
   * Applies operations to one wallet in their order, each with its own outcome. A refused one changes nothing, and does not affect the
   * others. When the promise resolves, the changes are durable: wallet, holds, key counters and journal together. When it rejects, the
   * outcome is unknown (all, some or none). Then make the same operations again, because they are idempotent. `now` is in ms since the
   * epoch.
   */
  apply(wallet: WalletRef, operations: readonly Operation[], now: number): Promise<Outcome[]>;
  /** A wallet's present state, from a read that does not roll back. An empty wallet where it has no entries. */
  wallet(wallet: WalletRef): Promise<Wallet>;
  /** Open holds whose check time is `now` or before, the longest due first. Reads only due holds. */
  dueHolds(query: DueQuery): Promise<Page<WalletHold>>;
  /** Open holds, oldest first. */
  holds(query: HoldQuery): Promise<Page<WalletHold>>;
  /** When the oldest of all open holds was opened, in ms since the epoch. Undefined where none is open. */
  oldestHold(): Promise<number | undefined>;
  /** The counters of these keys in a wallet. Unknown keys have none. Reads only these. */
  keyCounters(wallet: WalletRef, keyIds: readonly string[]): Promise<KeyCounter[]>;
  /** Entries of a wallet, newest first. */
  entries(wallet: WalletRef, query: EntryQuery): Promise<Entry[]>;
  /** Every wallet (of one account, where given) in its stored form, for an audit. */
  snapshots(accountId: string | undefined): AsyncIterable<WalletSnapshot>;
}

/** An open hold and its wallet. */
export interface WalletHold extends OpenHold {
  wallet: WalletRef;
}

/** A part of the result, in its order. */
export interface Page<T> {
  items: T[];
  /** The start of the next page, in the store's own form. Undefined on the last page. */
  next: string | undefined;
}

/** A query for due holds. */
export interface DueQuery {
  now: number;
  /** {@link Page.next} of the page before. Undefined: from the longest due. */
  after?: string | undefined;
  limit: number;
}

/** A query for open holds. */
export interface HoldQuery {
  /** One account. Undefined: all. */
  accountId?: string | undefined;
  /** Holds that one key pays for. Undefined: all. */
  keyId?: string | undefined;
  /** {@link Page.next} of the page before. Undefined: from the oldest. An invalid one is an INVALID_ARGUMENT. */
  after?: string | undefined;
  limit: number;
}

/** A query for entries. */
export interface EntryQuery {
  /** Only entries of this hold. */
  holdId?: string | undefined;
  /** Only entries with lower numbers. Undefined: from the newest. */
  below?: number | undefined;
  limit: number;
}

/** A wallet at one moment in its stored form. None of its values is trusted yet. */
export interface WalletSnapshot {
  /** The wallet. An empty account where no stored value names it any longer. */
  ref: WalletRef;
  /** Undefined where the wallet itself is gone and a journal or holds are left. */
  wallet: Wallet | undefined;
  holds: readonly OpenHold[];
  keys: readonly KeyCounter[];
  /** The highest number in its journal at that moment. */
  lastEntry: number;
  /** Its journal up to {@link lastEntry}, in order, by pages. Entries that are added meanwhile are left out. */
  entries(): AsyncIterable<readonly Entry[]>;
  /** One entry of it. */
  entry(number: number): Promise<Entry | undefined>;
}
