// Declares what the store of account files must promise, in SQLite and in MongoDB. Bytes are in the blob store, and quotas in
// `quota.ts`.

import type { AccountFile } from "./file.ts";

/** The slot by which a caller's repeat finds its upload. */
export interface UploadSlot {
  keyId: string;
  /** The caller's Idempotency-Key. */
  key: string;
}

/** A file about to be stored: verified, its bytes not yet in the blob store. */
export interface NewFile extends Omit<AccountFile, "state"> {
  /** Time until which its owner works on it, in ms since the epoch. */
  leaseUntil: number;
  /** For an upload whose caller sent a key. */
  idempotency?: UploadSlot & { fingerprint: string };
  /** For an import: its job uses it from the first moment. */
  pin?: JobPin;
}

/** A reference of a job. */
export interface JobPin {
  jobId: string;
  /** Its place among the job's references. */
  index: number;
}

/** The result of beginning a file. */
export type Begun =
  | { kind: "begun" }
  /** The file in its place: of the same id, in the same idempotency slot, or (for an import) with the same bytes. */
  | { kind: "taken"; file: AccountFile; fingerprint: string | undefined };

/** Names a file, and an attempt at storing it. */
export type Attempt = Pick<AccountFile, "fileId" | "storageId">;

/** A page of an account's files. */
export interface FilePage {
  /** The page begins behind this file, which may be deleted. Undefined: at the first. */
  after: string | undefined;
  limit: number;
  /** Undefined: all. */
  purpose: string | undefined;
  ascending: boolean;
}

/**
 * The store of an account's files, and of the jobs that use them. Every method is one transition of one file. `unpin` alone makes one
 * for each file of a job, one after the other. Transitions are atomic and durable when their promise resolves, and safe to repeat.
 * Reads see every write that was acknowledged before they began. All refuse with SERVICE_UNAVAILABLE where the store is away. Then the
 * change may or may not have been made. The quota counts bytes.
 */
export interface FileStore {
  /**
   * Writes a file with state `storing`, before anything is counted or stored. Nothing is written where a file that is not `gone` has
   * its id, or where its idempotency slot is taken. An import is not written either where the account has a `ready` file with the same
   * digest, or an import of it under way. So two imports of the same bytes never both begin. A repeat answers `begun`.
   */
  begin(file: NewFile): Promise<Begun>;
  /** `storing` to `ready`. A repeat answers true. False where the attempt was given up meanwhile. */
  publish(attempt: Attempt): Promise<boolean>;
  /**
   * `storing` to `deleted`, due at `now`. The attempt is given up, its idempotency slot is free, and no job uses it. False where it was
   * not `storing`.
   */
  drop(attempt: Attempt, now: number): Promise<boolean>;
  /** `ready` to `deleted`, due at `now`, with a free idempotency slot. Answers the file, or undefined where it was not `ready`. */
  remove(accountId: string, fileId: string, now: number): Promise<AccountFile | undefined>;
  /** `deleted` to `gone`, once its bytes are gone. Its place in the order is kept until `keepUntil`. */
  erase(attempt: Attempt, keepUntil: number): Promise<void>;
  /** Puts off a `deleted` file until `dueAt`. */
  defer(attempt: Attempt, dueAt: number): Promise<void>;

  /**
   * Lets a job use a `ready` file, whose bytes are then kept even if it is deleted. A file that this job uses already under this index
   * is answered in any state. Undefined for everything else.
   */
  pin(accountId: string, fileId: string, pin: JobPin): Promise<AccountFile | undefined>;
  /** The files that a job uses, by index. Files that are still `storing` are left out. */
  pinned(jobId: string): Promise<Map<number, AccountFile>>;
  /** The jobs that use a file. For a `deleted` one their number only falls. */
  pinsOf(fileId: string): Promise<string[]>;
  /** The job uses no file any longer. Those of its files that are `deleted` are due at `now`. */
  unpin(jobId: string, now: number): Promise<void>;

  /** A file of the account, in any state. */
  find(accountId: string, fileId: string): Promise<AccountFile | undefined>;
  /** The upload in an idempotency slot, `storing` or `ready`. */
  findBySlot(slot: UploadSlot): Promise<{ file: AccountFile; fingerprint: string } | undefined>;
  /** The account's `ready` files by time of creation, then id. Undefined where `after` names no file of the account. */
  list(accountId: string, page: FilePage): Promise<AccountFile[] | undefined>;
  /** The number of `ready` files of the account. */
  count(accountId: string): Promise<number>;
  /** Is there an attempt of this storage id whose bytes may be needed: `storing`, `ready` or `deleted`? */
  isReferenced(storageId: string): Promise<boolean>;
  /** Files `storing` past their lease, and `deleted` files that are due. Read by one index, the longest due first. */
  due(now: number, limit: number): Promise<AccountFile[]>;
  /** Deletes up to `limit` `gone` files whose time is over. Answers how many were deleted. */
  forget(now: number, limit: number): Promise<number>;
}
