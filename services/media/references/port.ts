/** A reference as a caller gave it, syntax checked. */
export type ReferenceInput =
  | { kind: "file"; fileId: string; param: string }
  /** A base64 image data URI, or a public http(s) URL. */
  | { kind: "url"; url: string; param: string };

/** A verified image of the account's file storage that a job uses. */
export interface PinnedReference {
  fileId: string;
  blobKey: string;
  mimeType: string;
  sizeBytes: number;
  width: number;
  height: number;
}

/** Brings references into the account's file storage. */
export interface ReferenceImporter {
  /**
   * Finds files, imports URLs and data URIs under ids made of `jobId` and index (so that a repeat imports once), counts them
   * against the quota, once for the same bytes of one account, and pins all of them for `jobId`: a pinned file's bytes stay
   * though it is deleted. Refuses with REFERENCE_NOT_FOUND, INVALID_INPUT_REFERENCE, UNSAFE_REFERENCE_URL,
   * INVALID_REFERENCE_IMAGE or UPLOAD_QUOTA_EXCEEDED at the reference's `param`; then nothing stays pinned.
   */
  importAll(
    job: { accountId: string; jobId: string },
    references: readonly ReferenceInput[],
    signal: AbortSignal,
  ): Promise<PinnedReference[]>;
  /** Lets go of a terminal job's files. Idempotent. */
  unpin(job: { accountId: string; jobId: string }): Promise<void>;
}
