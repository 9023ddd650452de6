// The agreement between the services and a store of bytes: files of accounts, outputs of jobs, speech. The folder blobs has the
// stores that implement it, in a folder and in S3.

import type { Readable } from "node:stream";

/** A store's facts about a blob. */
export interface BlobStat {
  sizeBytes: number;
  /** Milliseconds since the epoch when it was stored. */
  storedAtMs: number;
}

/** A blob that was stored. */
export interface StoredBlob {
  sizeBytes: number;
  /** Lower-case hexadecimal, computed while the bytes passed. */
  sha256: string;
}

/** One entry of the list of all blobs. */
export interface ListedBlob extends BlobStat {
  key: string;
}

/** Inclusive bounds of a read, both within the blob. */
export interface ByteRange {
  start: number;
  end: number;
}

/**
 * A store of bytes. The caller chooses the keys. A key is unique for ever and is written once. So a reader with a key and its digest
 * can trust the bytes. A key looks like `images/job_abc/file_def`: see {@link checkBlobKey}.
 */
export interface BlobStore {
  /**
   * Stores all bytes of `source`. A reader sees the whole blob or none. When this resolves, the bytes survive a crash. Where `source`
   * fails or `signal` aborts, nothing stays, and this rejects with that error. Rejects with {@link BlobExistsError} where the key is
   * taken, and its bytes stay unchanged. A store whose server is away or whose disk is full cannot work now. Then it refuses this and
   * every other operation with SERVICE_UNAVAILABLE.
   */
  put(key: string, source: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<StoredBlob>;
  /**
   * Opens a blob, or a range of it. The stream brings the bytes as the reader needs them. Rejects with {@link BlobNotFoundError}. The
   * caller reads to the end or destroys the stream.
   */
  openRead(key: string, range?: ByteRange): Promise<Readable>;
  /** Undefined where there is no such blob. */
  stat(key: string): Promise<BlobStat | undefined>;
  /** Deletes a blob. A missing one is no error. */
  delete(key: string): Promise<void>;
  /**
   * Every blob whose key begins with `prefix` (default: all), in no particular order, as a stream. It serves the collection of unused
   * blobs. Blobs that are written or deleted meanwhile may be seen or not.
   */
  list(prefix?: string): AsyncIterable<ListedBlob>;
}

/** No blob has this key. */
export class BlobNotFoundError extends Error {
  override readonly name = "BlobNotFoundError";
}

/** The key is taken. */
export class BlobExistsError extends Error {
  override readonly name = "BlobExistsError";
}

/** Most characters of a key, so that it fits into a file name. */
export const maxBlobKeyLength = 200;
const keyPattern = /^[a-z0-9_-][a-z0-9_.-]*(?:\/[a-z0-9_-][a-z0-9_.-]*)*$/;

/** Lower-case letters, digits, `_`, `-`, `.` in parts divided by `/`. No part begins with a dot. Throws a TypeError. */
export function checkBlobKey(key: string): string {
  if (key.length <= maxBlobKeyLength && keyPattern.test(key)) return key;
  throw new TypeError("a blob key is made of [a-z0-9_.-] in parts divided by '/'");
}
