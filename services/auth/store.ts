import type { Account, Key, KeyOperation, SecretDigest } from "./key.ts";

/** A key as it lies in the store. */
export interface StoredKey extends Key {
  /** The store's revision of its last change. */
  readonly revision: bigint;
}

/** An account to be made, with its first key. */
export interface NewAccount {
  readonly account: Account;
  readonly key: Key;
  /** The caller's operation id; absent: each call makes an account. */
  readonly operationId?: string;
  /** Did the caller bring the key's secret (then a repeat must bring the same one, or none)? */
  readonly secretBrought: boolean;
}

/** What became of it. */
export interface MadeAccount {
  readonly account: Account;
  readonly key: StoredKey;
  /** The operation id was known: nothing was made, and account and key are those of the first call as they are now. */
  readonly replayed: boolean;
}

/** A key found by its secret, as of one revision. */
interface FoundKey {
  readonly key: StoredKey;
  readonly account: Account;
  /** Everything that changed up to here is in `key`; what changed later may or may not be. Never above the truth. */
  readonly revision: bigint;
}

/** What changed after some revision. */
export interface KeyChanges {
  /** The store's revision now. */
  readonly revision: bigint;
  /** Each once, in no order. */
  readonly keyIds: readonly string[];
}

/** When a key was used. */
export interface KeyUse {
  readonly keyId: string;
  readonly atMs: number;
}

/** Where a page of accounts begins: after this one. */
export interface AccountCursor {
  readonly createdAtMs: number;
  readonly accountId: string;
}

/** Which accounts. */
export interface AccountSearch {
  readonly by: "id" | "name";
  /** As it is stored: an id, or folded as `nameKeyOf` does. */
  readonly prefix: string;
  readonly after?: { readonly nameKey: string; readonly accountId: string };
  readonly limit: number;
}

/** Which keys. */
export interface KeyPage {
  /** Of their ids; absent: all. */
  readonly prefix?: string;
  readonly after?: { readonly createdAtMs: number; readonly keyId: string };
  readonly limit: number;
}

/** Above every text that begins with a prefix. */
export function beyond(prefix: string): string {
  return `${prefix}\u{10ffff}`;
}

/**
 * Accounts and keys, as whole transitions. Each is atomic for every client of the store, durable when answered, and
 * raises the store's revision by at least one. A change is in `changesSince` by the time its promise resolves; a caller
 * that got no answer knows nothing and repeats.
 *
 * A secret's SHA-256 belongs to one key for ever, as its current or its former secret: a call that would give it to
 * another key is refused with OPERATION_CONFLICT, also where the key that has it is revoked.
 */
export interface AuthStore {
  /** Makes tables, collections and indexes. To be called once, before all else. */
  open(): Promise<void>;
  /**
   * Makes an account and its first key. With an operation id that was used before: nothing changes; the first answer
   * again where the name is the same and the secret (if brought) too, else refuses with OPERATION_MISMATCH.
   */
  createAccount(command: NewAccount): Promise<MadeAccount>;
  /**
   * Adds a key. Refuses with ACCOUNT_NOT_FOUND; with OPERATION_CONFLICT where the account has 1,000. Where its `madeBy` has
   * made a key before, nothing changes and that key is the answer; with another body: IDEMPOTENCY_KEY_REUSED.
   */
  createKey(key: Key): Promise<StoredKey>;
  /**
   * `rotated` of key.ts, in place. Refuses with KEY_NOT_FOUND and as `rotated` does. Where the operation has rotated the
   * key before (`isRepeated`), nothing changes.
   */
  rotateKey(command: {
    keyId: string;
    secret: SecretDigest;
    graceMs: number;
    nowMs: number;
    /** Throws where this key may not be rotated; judged in the same step. */
    allow?: (key: StoredKey) => void;
    operation?: KeyOperation;
  }): Promise<StoredKey>;
  /**
   * Puts what `next` makes of a key in its place; leaves it as it is where `next` answers the same object. `next` may run
   * several times, keeps id, account and secrets, and what it throws is thrown. Refuses with KEY_NOT_FOUND.
   */
  changeKey(keyId: string, next: (key: StoredKey) => Key): Promise<StoredKey>;
  /** `withState` of key.ts, in place; all keys of the account count as changed. Refuses with ACCOUNT_NOT_FOUND. */
  setAccountState(command: {
    accountId: string;
    suspended: boolean;
    nowMs: number;
  }): Promise<Account>;
  /** `closing` of key.ts, in place; all keys of the account count as changed. Refuses with ACCOUNT_NOT_FOUND. */
  beginClosing(command: { accountId: string; nowMs: number }): Promise<Account>;
  /** `closed` of key.ts, in place. Refuses with ACCOUNT_NOT_FOUND, and as `closed` does. */
  endClosing(command: { accountId: string; nowMs: number }): Promise<Account>;
  /** Accounts that are being closed and not closed yet, the longest first, by an index. */
  closingAccounts(limit: number): Promise<Account[]>;
  /**
   * Raises the last use of keys; no change that is told. Unknown keys are passed over. A use that is noted while its key
   * changes may be lost.
   */
  noteUses(uses: readonly KeyUse[]): Promise<void>;
  /** One key, in any state. */
  findKey(keyId: string): Promise<StoredKey | undefined>;
  /** The key that an operation made. */
  findKeyMadeBy(slot: string): Promise<StoredKey | undefined>;
  /** `revoked` of key.ts, in place. A repeat answers the first state. Refuses with KEY_NOT_FOUND. */
  revokeKey(command: { keyId: string; nowMs: number }): Promise<StoredKey>;
  /** The key that has this secret, current or former, valid or not. By a unique index, never by a scan. */
  findBySecretHash(sha256: Uint8Array): Promise<FoundKey | undefined>;
  /** One account. */
  findAccount(accountId: string): Promise<Account | undefined>;
  /** Accounts by age, then id, after `after` (absent: from the first), at most `limit`. */
  listAccounts(page: { after?: AccountCursor; limit: number }): Promise<Account[]>;
  /**
   * Accounts whose id begins with the prefix, by id; or whose `nameKeyOf` does, by that, then id. After `after`, at most
   * `limit`, by an index.
   */
  searchAccounts(search: AccountSearch): Promise<Account[]>;
  /** The keys of all accounts by age, then id; or by id those whose id begins with a prefix. By an index. */
  listAllKeys(page: KeyPage): Promise<StoredKey[]>;
  /** An account's keys by age, then id. Refuses with ACCOUNT_NOT_FOUND. */
  listKeys(accountId: string): Promise<StoredKey[]>;
  /** The revision now: 1 or more, never falling while the data lives. */
  revision(): Promise<bigint>;
  /**
   * The keys that changed after `revision`. Undefined where that cannot be told: the revision is none of this store's
   * (it lies above its own), or more than `limit` keys changed. Keys that changed above the answer's own revision may be
   * among them; they are told again. One small read where nothing changed: it is polled.
   */
  changesSince(revision: bigint, limit: number): Promise<KeyChanges | undefined>;
}

/** The part of the store that changes nothing. */
export type AuthReads = Pick<
  AuthStore,
  | "findBySecretHash"
  | "findKey"
  | "findKeyMadeBy"
  | "findAccount"
  | "listAccounts"
  | "searchAccounts"
  | "closingAccounts"
  | "listAllKeys"
  | "listKeys"
  | "revision"
  | "changesSince"
>;
