import type { AccountFile } from "./file.ts";

/** Under what an upload is found again by its caller. */
export interface UploadSlot {
  keyId: string;
  /** The caller's Idempotency-Key. */
  key: string;
}

/** A file about to be stored: verified, its bytes not yet in the blob store. */
export interface NewFile extends Omit<AccountFile, "state"> {
  /** Until when its owner is at it; ms since the epoch. */
  leaseUntil: number;
  /** Of an upload, where its caller sent a key. */
  idempotency?: UploadSlot & { fingerprint: string };
  /** Of an import: the job that it is for uses it from the first moment. */
  pin?: JobPin;
}

/** A reference of a job. */
export interface JobPin {
  jobId: string;
  /** Its place among the job's references. */
  index: number;
}

/** What became of a beginning. */
export type Begun =
  | { kind: "begun" }
  /** What is there instead: of the same id, in the same idempotency slot, or (for an import) with the same bytes. */
  | { kind: "taken"; file: AccountFile; fingerprint: string | undefined };

/** Which file, and which attempt at storing it. */
export type Attempt = Pick<AccountFile, "fileId" | "storageId">;

/** A page of an account's files. */
export interface FilePage {
  /** Those behind this one, which may be deleted; undefined: from the first. */
  after: string | undefined;
  limit: number;
  /** Undefined: all. */
  purpose: string | undefined;
  ascending: boolean;
}

/**
 * Where an account's files are written down, and which jobs use them. Every method is one transition of one file (but
 * `unpin`: of each file of a job, one after the other), atomic and durable when its promise resolves, and safe to repeat.
 * Reads see what was acknowledged before they began. All refuse with SERVICE_UNAVAILABLE where the store is away; whether
 * the change was made is then not known. Counting bytes is the quota's affair.
 */
export interface FileStore {
  /**
   * Writes a file with state `storing`, before anything is counted or stored. Nothing is written where its id is taken
   * by a file that is not `gone`, where its idempotency slot is, or, for an import, where the account has a `ready` file or
   * an import under way with the same digest: two imports of the same bytes never both begin. A repeat answers `begun`.
   */
  begin(file: NewFile): Promise<Begun>;
  /** `storing` to `ready`; a repeat answers true. False where the attempt was given up meanwhile. */
  publish(attempt: Attempt): Promise<boolean>;
  /**
   * `storing` to `deleted`, due at `now`: the attempt is given up; its idempotency slot is free, and no job uses it. False
   * where it was not `storing`.
   */
  drop(attempt: Attempt, now: number): Promise<boolean>;
  /**
   * `ready` to `deleted`, due at `now`; its idempotency slot is free. Answers the file, or undefined where it was not
   * `ready`.
   */
  remove(accountId: string, fileId: string, now: number): Promise<AccountFile | undefined>;
  /** `deleted` to `gone`, once its bytes are: its place in the order is kept until `keepUntil`. */
  erase(attempt: Attempt, keepUntil: number): Promise<void>;
  /** Looks at a `deleted` file again at `dueAt`, not before. */
  defer(attempt: Attempt, dueAt: number): Promise<void>;

  /**
   * Lets a job use a `ready` file, which keeps the bytes should it be deleted. A file that this job uses already under
   * this index is answered in any state. Undefined for everything else alike.
   */
  pin(accountId: string, fileId: string, pin: JobPin): Promise<AccountFile | undefined>;
  /** The files that a job uses, by index. One that is still `storing` is not among them. */
  pinned(jobId: string): Promise<Map<number, AccountFile>>;
  /** The jobs that use a file. Of one that is `deleted` they only become fewer. */
  pinsOf(fileId: string): Promise<string[]>;
  /** The job uses no file any more; those of them that are `deleted` are due at `now`. */
  unpin(jobId: string, now: number): Promise<void>;

  /** A file of the account, in any state. */
  find(accountId: string, fileId: string): Promise<AccountFile | undefined>;
  /** The upload in an idempotency slot, `storing` or `ready`. */
  findBySlot(slot: UploadSlot): Promise<{ file: AccountFile; fingerprint: string } | undefined>;
  /** The account's `ready` files by time of creation, then id. Undefined where `after` names nothing of the account. */
  list(accountId: string, page: FilePage): Promise<AccountFile[] | undefined>;
  /** How many `ready` files the account has. */
  count(accountId: string): Promise<number>;
  /** Is there an attempt of this storage id whose bytes may be wanted: `storing`, `ready` or `deleted`? */
  isReferenced(storageId: string): Promise<boolean>;
  /** `storing` past their lease and `deleted` that are due: read by one index, the longest due first. */
  due(now: number, limit: number): Promise<AccountFile[]>;
  /** Deletes up to `limit` `gone` files whose time is over; answers how many went. */
  forget(now: number, limit: number): Promise<number>;
}
