import type { Account, Key, SecretDigest } from "./key.ts";

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
export interface FoundKey {
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

/** Where a page of accounts begins: after this one. */
export interface AccountCursor {
  readonly createdAtMs: number;
  readonly accountId: string;
}

/**
 * Accounts and keys, as whole transitions. Each is atomic for every client of the store, durable when answered, and
 * raises the store's revision by at least one. A change is in `changesSince` by the time its promise resolves; a caller
 * that got no answer knows nothing and repeats.
 *
 * A secret's SHA-256 belongs to one key for ever, as its current or its former secret: whoever would give it to another
 * is refused with OPERATION_CONFLICT, also where the key that has it is revoked.
 */
export interface AuthStore {
  /** Makes tables, collections and indexes. To be called once, before all else. */
  open(): Promise<void>;
  /**
   * Makes an account and its first key. With an operation id that was used before: nothing changes; the first answer
   * again where the name is the same and the secret (if brought) too, else refuses with OPERATION_MISMATCH.
   */
  createAccount(command: NewAccount): Promise<MadeAccount>;
  /** Adds a key. Refuses with ACCOUNT_NOT_FOUND; with OPERATION_CONFLICT where the account has 1,000. */
  createKey(key: Key): Promise<StoredKey>;
  /** `rotated` of key.ts, in place. Refuses with KEY_NOT_FOUND and as `rotated` does. */
  rotateKey(command: {
    keyId: string;
    secret: SecretDigest;
    graceMs: number;
    nowMs: number;
  }): Promise<StoredKey>;
  /** `revoked` of key.ts, in place. A repeat answers the first state. Refuses with KEY_NOT_FOUND. */
  revokeKey(command: { keyId: string; nowMs: number }): Promise<StoredKey>;
  /** The key that has this secret, current or former, valid or not. By a unique index, never by a scan. */
  findBySecretHash(sha256: Uint8Array): Promise<FoundKey | undefined>;
  /** One account. */
  findAccount(accountId: string): Promise<Account | undefined>;
  /** Accounts by age, then id, after `after` (absent: from the first), at most `limit`. */
  listAccounts(page: { after?: AccountCursor; limit: number }): Promise<Account[]>;
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
