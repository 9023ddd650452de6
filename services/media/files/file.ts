/** How an image of an account's storage came in. */
export type FileOrigin = "upload" | "import";

/**
 * How a file stands:
 * - `storing`: its bytes are on their way; no caller sees it.
 * - `ready`: listed, readable, counted.
 * - `deleted`: hidden; its quota is being freed, its bytes go when no job uses them.
 * - `gone`: its bytes are gone; it keeps its place in the order for a while.
 */
export type FileState = "storing" | "ready" | "deleted" | "gone";

/** What verifying an image found out. */
export interface ImageFacts {
  mimeType: string;
  sizeBytes: number;
  /** Lower-case hexadecimal. */
  sha256: string;
  /** Pixels. */
  width: number;
  height: number;
}

/** An image of an account's storage. */
export interface AccountFile extends ImageFacts {
  fileId: string;
  accountId: string;
  origin: FileOrigin;
  state: FileState;
  /** Made anew by each attempt at storing it: names its bytes, and its place in the quota. */
  storageId: string;
  fileName: string;
  purpose: string;
  /** Ms since the epoch. */
  createdAt: number;
}

const prefix = "uploads/";

/** Where a file's bytes lie in the blob store. */
export function blobKeyOf(file: Pick<AccountFile, "storageId">): string {
  return `${prefix}${file.storageId}`;
}

/** The storage id of a blob key, or undefined where it is not of this kind. */
export function storageIdOf(blobKey: string): string | undefined {
  return blobKey.startsWith(prefix) ? blobKey.slice(prefix.length) : undefined;
}
