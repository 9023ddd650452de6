import type { Operation, Outcome } from "./operations.ts";
import type { Entry, KeyCounter, OpenHold, Wallet, WalletRef } from "./wallet.ts";

/**
 * Wallets with their holds and journals. Every guarantee holds for any number of callers and processes, and survives
 * the death of this process at any moment. Methods refuse with SERVICE_UNAVAILABLE where the store is away.
 */
export interface LedgerStore {
  /** Makes tables, collections and indexes. To be called once, before all else. */
  open(): Promise<void>;
  /**
   * Applies operations to one wallet in their order, each with an outcome of its own; a refused one changes nothing,
   * and the others do not feel it. When the promise resolves, what changed is durable: wallet, holds, key counters and
   * journal together. When it rejects, the outcome is unknown (all, some or none): make the same operations again, they
   * are idempotent. `now` is in ms since the epoch.
   */
  apply(wallet: WalletRef, operations: readonly Operation[], now: number): Promise<Outcome[]>;
  /** A wallet as it stands, from a read that does not roll back; an empty one where it has no entries. */
  wallet(wallet: WalletRef): Promise<Wallet>;
  /** Open holds whose check time is `now` or before, the longest due first. Reads what is due and nothing else. */
  dueHolds(query: DueQuery): Promise<Page<WalletHold>>;
  /** Open holds, oldest first. */
  holds(query: HoldQuery): Promise<Page<WalletHold>>;
  /** When the oldest of all open holds was opened, in ms since the epoch; undefined where none is open. */
  oldestHold(): Promise<number | undefined>;
  /** The counters of these keys in a wallet; of keys that it knows nothing of there is none. Reads these and nothing else. */
  keyCounters(wallet: WalletRef, keyIds: readonly string[]): Promise<KeyCounter[]>;
  /** Entries of a wallet, newest first. */
  entries(wallet: WalletRef, query: EntryQuery): Promise<Entry[]>;
  /** Every wallet (of one account, where given) as it is stored, for an audit. */
  snapshots(accountId: string | undefined): AsyncIterable<WalletSnapshot>;
}

/** An open hold and whose it is. */
export interface WalletHold extends OpenHold {
  wallet: WalletRef;
}

/** Some of what was asked for, in its order. */
export interface Page<T> {
  items: T[];
  /** Where the next page begins, in the store's own words; undefined on the last page. */
  next: string | undefined;
}

/** Which due holds. */
export interface DueQuery {
  now: number;
  /** {@link Page.next} of the page before; undefined: from the longest due. */
  after?: string | undefined;
  limit: number;
}

/** Which open holds. */
export interface HoldQuery {
  /** One account; undefined: all. */
  accountId?: string | undefined;
  /** Those that one key pays for; undefined: all. */
  keyId?: string | undefined;
  /** {@link Page.next} of the page before; undefined: from the oldest. One that makes no sense is an INVALID_ARGUMENT. */
  after?: string | undefined;
  limit: number;
}

/** Which entries. */
export interface EntryQuery {
  /** Only those of this hold. */
  holdId?: string | undefined;
  /** Only those numbered below; undefined: from the newest. */
  below?: number | undefined;
  limit: number;
}

/** A wallet at one moment, just as stored: nothing in it is believed yet. */
export interface WalletSnapshot {
  /** Whose; an empty account where nothing stored says so any more. */
  ref: WalletRef;
  /** Undefined where the wallet itself is gone and a journal or holds are left. */
  wallet: Wallet | undefined;
  holds: readonly OpenHold[];
  keys: readonly KeyCounter[];
  /** The highest number in its journal at that moment. */
  lastEntry: number;
  /** Its journal up to {@link lastEntry}, in order, by pages; what is added meanwhile is left out. */
  entries(): AsyncIterable<readonly Entry[]>;
  /** One entry of it. */
  entry(number: number): Promise<Entry | undefined>;
}
