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

/**
 * Bytes that an account's files may take of the disk, in quotas: those that it has, and those that it deleted while jobs use
 * them. A deleted file frees its quota at once, and jobs wait for long, so that the quota alone bounds no disk. Twice: all
 * that an account has can be deleted and uploaded anew while its jobs run.
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
  /** Of no quota any more, still on disk: see {@link QuotaStore.keep}. */
  keptBytes: number;
}

/** Is there room for `bytes` more, in the quota and on disk? */
export function hasRoom(usage: QuotaUsage, bytes: number, quotaBytes: number): boolean {
  const counted = usage.usedBytes + usage.reservedBytes + bytes;
  return counted <= quotaBytes && counted + usage.keptBytes <= storedLimitOf(quotaBytes);
}

/**
 * A small wallet of bytes for each account. Law: used + reserved never rises above the limit, nor used + reserved + kept
 * above {@link storedLimitOf} it, with any number of calls at once, and each is the sum of its charges. Every method is one transition of one wallet, atomic and durable when its promise
 * resolves, and safe to repeat in any order: a released charge stays released, so that a delayed call cannot revive it.
 * All refuse with SERVICE_UNAVAILABLE where the store is away; whether the change was made is then not known.
 */
export interface QuotaStore {
  /**
   * Sets bytes aside. `full`: there is no room, and nothing is written. `released`: the charge was kept or released before. A
   * repeat answers `reserved`, also after a commit; the bytes of the first time count.
   */
  reserve(
    charge: QuotaCharge,
    bytes: number,
    limitBytes: number,
  ): Promise<"reserved" | "full" | "released">;
  /** What was reserved is used from now on. False where the charge was kept or released, or never reserved. */
  commit(charge: QuotaCharge): Promise<boolean>;
  /**
   * Frees what was reserved or used from the quota; it counts as kept on disk until it is released. A charge that never was
   * is written down as released, at `now`.
   */
  keep(charge: QuotaCharge, now: number): Promise<void>;
  /** Frees what was reserved, used or kept: nothing of it is on disk. A charge that never was is written down as released, at `now`. */
  release(charge: QuotaCharge, now: number): Promise<void>;
  /** Zeros for an account without charges. */
  usage(accountId: string): Promise<QuotaUsage>;
  /** Deletes up to `limit` charges that were released before `before`; answers how many went. */
  forget(before: number, limit: number): Promise<number>;
}
