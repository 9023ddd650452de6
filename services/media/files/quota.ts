/** Bytes of a block: no file system and no store of objects keeps a file in less. */
const blockBytes = 4096;
/** What is written down of a file beside its bytes, with indexes, its place in the quota and what an object store keeps. */
const recordBytes = 4096;

/**
 * What a file takes of its account's quota: what it takes of the disk. So 1 GiB is at most 131,072 files, however small.
 */
export function quotaBytesOf({ sizeBytes }: { sizeBytes: number }): number {
  return Math.ceil(sizeBytes / blockBytes) * blockBytes + recordBytes;
}

/** A place in an account's quota. */
export interface QuotaCharge {
  accountId: string;
  /** Made by the caller, unique for ever: one for each attempt at storing a file. */
  chargeId: string;
}

/** How much of an account's quota is taken, in bytes. */
export interface QuotaUsage {
  usedBytes: number;
  reservedBytes: number;
}

/**
 * A small wallet of bytes for each account. Law: used + reserved never rises above the limit, whatever the concurrency, and
 * both are the sums of their charges. Every method is one transition of one wallet, atomic and durable when its promise
 * resolves, and safe to repeat in any order: a released charge stays released, so that a delayed call cannot revive it.
 * All refuse with SERVICE_UNAVAILABLE where the store is away; whether the change was made is then not known.
 */
export interface QuotaStore {
  /**
   * Sets bytes aside. `full`: there is no room, and nothing is written. `released`: the charge was released before. A
   * repeat answers `reserved`, also after a commit; the bytes of the first time count.
   */
  reserve(
    charge: QuotaCharge,
    bytes: number,
    limitBytes: number,
  ): Promise<"reserved" | "full" | "released">;
  /** What was reserved is used from now on. False where the charge was released, or never reserved. */
  commit(charge: QuotaCharge): Promise<boolean>;
  /** Frees what was reserved or used. A charge that never was is written down as released, at `now`. */
  release(charge: QuotaCharge, now: number): Promise<void>;
  /** Zeros for an account without charges. */
  usage(accountId: string): Promise<QuotaUsage>;
  /** Deletes up to `limit` charges that were released before `before`; answers how many went. */
  forget(before: number, limit: number): Promise<number>;
}
