// Says how many bytes a file takes of its account's quota, and what the store of quotas must promise.

/** Bytes of a block. No file system and no store of objects uses less for a file. */
const blockBytes = 4096;
/** Bytes of a file's records: its document with indexes, its place in the quota and the metadata of an object store. */
const recordBytes = 4096;

/**
 * The bytes that a file takes of its account's quota: those that it takes of the disk. So 1 GiB is at most 131,072 files, even very
 * small ones.
 */
export function quotaBytesOf({ sizeBytes }: { sizeBytes: number }): number {
  return Math.ceil(sizeBytes / blockBytes) * blockBytes + recordBytes;
}

/**
 * The most room on disk of an account's files, as a multiple of its quota. It includes deleted files that jobs still use. A deleted
 * file frees its quota at once, and jobs wait for long, so the quota alone does not bound the disk. Twice: an account can delete all
 * its files and upload as many again while its jobs run.
 */
const storedPerQuota = 2;

/** The most that an account with this quota may have on disk, in bytes. */
export function storedLimitOf(quotaBytes: number): number {
  return storedPerQuota * quotaBytes;
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
  /** Bytes that count in no quota any longer, but are still on disk: see {@link QuotaStore.keep}. */
  keptBytes: number;
}

/** Is there room for `bytes` more, in the quota and on disk? */
export function hasRoom(usage: QuotaUsage, bytes: number, quotaBytes: number): boolean {
  const counted = usage.usedBytes + usage.reservedBytes + bytes;
  return counted <= quotaBytes && counted + usage.keptBytes <= storedLimitOf(quotaBytes);
}

/**
 * A small wallet of bytes for each account. Law: with any number of calls at once, the used bytes and those taken in advance never
 * exceed the limit together. With the kept ones they never exceed {@link storedLimitOf} it. Each sum is the sum of its charges. Every
 * method is one transition of one wallet, atomic and durable when its promise resolves. It is safe to repeat in any order: a released
 * charge stays released, so that a delayed call cannot revive it. All refuse with SERVICE_UNAVAILABLE where the store is away. Then the
 * change may or may not have been made.
 */
export interface QuotaStore {
  /**
   * Takes bytes in advance. `full`: there is no room, and nothing is written. `released`: the charge was kept or released before. A
   * repeat answers `reserved`, even after a commit. The bytes of the first call count.
   */
  reserve(
    charge: QuotaCharge,
    bytes: number,
    limitBytes: number,
  ): Promise<"reserved" | "full" | "released">;
  /** Counts the bytes taken in advance as used from now on. False where the charge was kept or released, or does not exist. */
  commit(charge: QuotaCharge): Promise<boolean>;
  /**
   * Frees the bytes of a charge from the quota. They count as kept on disk until the charge is released. A charge that does not exist
   * is written down as released, at `now`.
   */
  keep(charge: QuotaCharge, now: number): Promise<void>;
  /**
   * Frees all bytes of a charge, because none of them is on disk. A charge that does not exist is written down as released, at `now`.
   */
  release(charge: QuotaCharge, now: number): Promise<void>;
  /** Zeros for an account without charges. */
  usage(accountId: string): Promise<QuotaUsage>;
  /** Deletes up to `limit` charges that were released before `before`. Answers how many were deleted. */
  forget(before: number, limit: number): Promise<number>;
}
