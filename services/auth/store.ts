// Declares what the store of accounts and keys must promise, in SQLite and in MongoDB. `store-sqlite.ts` and `store-mongo.ts`
// keep the promises, and one contract test holds both to them.

import type { Account } from "./account.ts";
import type { Key, KeyOperation, SecretDigest } from "./key.ts";

/** A key in the store. */
export interface StoredKey extends Key {
  /** The store's revision of its last change. */
  readonly revision: bigint;
}

/** An account to be made, with its first key. */
export interface NewAccount {
  readonly account: Account;
  readonly key: Key;
  /** The caller's operation id. Absent means that each call makes an account. */
  readonly operationId?: string;
  /** Did the caller bring the key's secret? In a repeat it must be the secret of the first call. */
  readonly secretBrought: boolean;
}

/** The account that was made, and its first key. */
export interface MadeAccount {
  readonly account: Account;
  readonly key: StoredKey;
  /** The operation id was known, so nothing was made. Account and key are those of the first call, in their present state. */
  readonly replayed: boolean;
}

/** A key found by its secret, at one revision. */
export interface FoundKey {
  readonly key: StoredKey;
  readonly account: Account;
  /** `key` contains every change up to this revision, and may contain later ones. Never above the store's own revision. */
  readonly revision: bigint;
}

/** The changes after a revision. */
export interface KeyChanges {
  /** The store's revision now. */
  readonly revision: bigint;
  /** Each key once, in no order. */
  readonly keyIds: readonly string[];
}

/** A use of a key. */
export interface KeyUse {
  readonly keyId: string;
  readonly atMs: number;
}

/** A page of accounts begins after this one. */
export interface AccountCursor {
  readonly createdAtMs: number;
  readonly accountId: string;
}

/** Selects accounts. */
export interface AccountSearch {
  readonly by: "id" | "name";
  /** In its stored form: an id, or a name in the form of `nameKeyOf`. */
  readonly prefix: string;
  readonly after?: { readonly nameKey: string; readonly accountId: string };
  readonly limit: number;
}

/** Selects keys. */
export interface KeyPage {
  /** The beginning of their ids. Absent means all keys. */
  readonly prefix?: string;
  readonly after?: { readonly createdAtMs: number; readonly keyId: string };
  readonly limit: number;
}

/** A text above every text that begins with the prefix. */
export function beyond(prefix: string): string {
  return `${prefix}\u{10ffff}`;
}

/**
 * Accounts and keys, as whole transitions. Each is atomic for every client of the store, durable when answered, and raises the
 * store's revision by at least one. A change is in `changesSince` by the time its promise resolves. A caller without an answer does
 * not know whether the change was made, and repeats the call.
 *
 * A secret's SHA-256 belongs to one key alone, as its current or its former secret. A call that would give it to another key is
 * refused with OPERATION_CONFLICT. That includes the secrets of a deleted key.
 */
export interface AuthStore {
  /** Makes tables, collections and indexes. To be called once, before all else. */
  open(): Promise<void>;
  /**
   * Makes an account and its first key. Where the operation id was used before, nothing changes. The answer then has the account
   * and the key of the first call. Refuses with OPERATION_MISMATCH where the name, or a secret that the caller brought, differs
   * from the first call's.
   */
  createAccount(command: NewAccount): Promise<MadeAccount>;
  /**
   * Adds a key. Refuses with ACCOUNT_NOT_FOUND, and with OPERATION_CONFLICT where the account has 1,000 keys. Where the operation
   * of `madeBy` has made a key before, nothing changes, and that key is the answer. Refuses a repeat with another body with
   * IDEMPOTENCY_KEY_REUSED.
   */
  createKey(key: Key): Promise<StoredKey>;
  /**
   * Rotates a key, by `rotated` of key.ts. Refuses with KEY_NOT_FOUND, and as `rotated` does. Where the operation has rotated the
   * key before (`isRepeated`), nothing changes.
   */
  rotateKey(command: {
    keyId: string;
    secret: SecretDigest;
    graceMs: number;
    nowMs: number;
    /** Throws where this key may not be rotated. Called in the same transition. */
    allow?: (key: StoredKey) => void;
    operation?: KeyOperation;
  }): Promise<StoredKey>;
  /**
   * Replaces a key by the one that `next` makes of it. Where `next` answers the same object, nothing changes. `next` may run
   * several times, and keeps id, account and secrets. An error that `next` throws is thrown. Refuses with KEY_NOT_FOUND.
   */
  changeKey(keyId: string, next: (key: StoredKey) => Key): Promise<StoredKey>;
  /**
   * Replaces an account by the one that `next` makes of it. Where `next` answers the same object, nothing changes. `next` may run
   * several times, and keeps the id. An error that `next` throws is thrown. All keys of the account count as changed. Refuses with
   * ACCOUNT_NOT_FOUND.
   */
  changeAccount(accountId: string, next: (account: Account) => Account): Promise<Account>;
  /**
   * Applies `withState` of account.ts. All keys of the account count as changed. Refuses with ACCOUNT_NOT_FOUND, and as `withState`
   * does.
   */
  setAccountState(command: {
    accountId: string;
    suspended: boolean;
    nowMs: number;
  }): Promise<Account>;
  /** Applies `closing` of account.ts. All keys of the account count as changed. Refuses with ACCOUNT_NOT_FOUND. */
  beginClosing(command: { accountId: string; nowMs: number }): Promise<Account>;
  /** Applies `closed` of account.ts. Refuses with ACCOUNT_NOT_FOUND, and as `closed` does. */
  endClosing(command: { accountId: string; nowMs: number }): Promise<Account>;
  /** Accounts that are being closed and not closed yet, the longest first, by an index. */
  closingAccounts(limit: number): Promise<Account[]>;
  /**
   * Raises the last use of keys. That is no change for `changesSince`. Unknown keys are left out. A use that is noted while its key
   * changes may be lost.
   */
  noteUses(uses: readonly KeyUse[]): Promise<void>;
  /** One key, in any state. */
  findKey(keyId: string): Promise<StoredKey | undefined>;
  /** The key that an operation made. */
  findKeyMadeBy(slot: string): Promise<StoredKey | undefined>;
  /** Deletes a key, by `revoked` of key.ts. A repeat changes nothing. Refuses with KEY_NOT_FOUND. */
  revokeKey(command: { keyId: string; nowMs: number }): Promise<StoredKey>;
  /** The key that has this secret, current or former, valid or not. By a unique index, never by a scan. */
  findBySecretHash(sha256: Uint8Array): Promise<FoundKey | undefined>;
  /** One account. */
  findAccount(accountId: string): Promise<Account | undefined>;
  /** The accounts with these ids, in no order. Unknown ones are left out. */
  findAccounts(accountIds: readonly string[]): Promise<Account[]>;
  /** At most `limit` accounts after `after`, by age, then id. Without `after`, from the first. */
  listAccounts(page: { after?: AccountCursor; limit: number }): Promise<Account[]>;
  /**
   * At most `limit` accounts after `after`, by an index. By id: accounts whose id begins with the prefix, in the order of ids. By
   * name: accounts whose `nameKeyOf` begins with it, in the order of that, then id.
   */
  searchAccounts(search: AccountSearch): Promise<Account[]>;
  /** The keys of all accounts by age, then id. With a prefix: keys whose id begins with it, by id. By an index. */
  listAllKeys(page: KeyPage): Promise<StoredKey[]>;
  /** An account's keys by age, then id. Refuses with ACCOUNT_NOT_FOUND. */
  listKeys(accountId: string): Promise<StoredKey[]>;
  /** The revision now: 1 or more. It never falls while the data exists. */
  revision(): Promise<bigint>;
  /**
   * The keys that changed after `revision`. Undefined where `revision` is above the store's own, so that another store gave it, or
   * where more than `limit` keys changed. Keys that changed above the answer's own revision may be among the keys. A later call
   * answers them again. Processes poll this: it is one small read where nothing changed.
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
  | "findAccounts"
  | "listAccounts"
  | "searchAccounts"
  | "closingAccounts"
  | "listAllKeys"
  | "listKeys"
  | "revision"
  | "changesSince"
>;
