// Says what a file of an account is, its states, and the key of its bytes among the blobs.

/** The way in which an image came into an account's storage. */
export type FileOrigin = "upload" | "import";

/**
 * The states of a file:
 * - `storing`: its bytes are being stored, and no caller sees it.
 * - `ready`: listed, readable, counted.
 * - `deleted`: hidden. Its quota is being freed, and its bytes are removed when no job uses them.
 * - `gone`: its bytes are gone. It keeps its place in the order for a while.
 */
export type FileState = "storing" | "ready" | "deleted" | "gone";

/** The facts that verifying an image gave. */
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
  /** New for each attempt at storing the file. It names the file's bytes, and its place in the quota. */
  storageId: string;
  fileName: string;
  purpose: string;
  /** Milliseconds since the epoch. */
  createdAt: number;
}

const prefix = "uploads/";

/** The key of a file's bytes in the blob store. */
export function blobKeyOf(file: Pick<AccountFile, "storageId">): string {
  return `${prefix}${file.storageId}`;
}

/** The storage id of a blob key, or undefined where the key is of another kind. */
export function storageIdOf(blobKey: string): string | undefined {
  return blobKey.startsWith(prefix) ? blobKey.slice(prefix.length) : undefined;
}
