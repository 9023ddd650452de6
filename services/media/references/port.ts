/** A reference as a caller gave it, syntax checked. */
export type ReferenceInput =
  | FileReference
  /** A base64 image data URI, or a public http(s) URL. */
  | { kind: "url"; url: string; param: string };

/** A file of the account's storage, or an output of the key's. */
export interface FileReference {
  kind: "file";
  fileId: string;
  param: string;
  /** It is this job's output, and nothing else. */
  jobId?: string;
}

/** A verified image that a job uses: of the account's file storage, or what another job of its key has made. */
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
   * Finds files and outputs (whose bytes are used where they lie), imports URLs and data URIs under ids made of `jobId` and index (so that a repeat imports once), counts them
   * against the quota, once for the same bytes of one account, and pins all of them for `jobId`: a pinned file's bytes stay
   * though it is deleted. Refuses with REFERENCE_NOT_FOUND, INVALID_INPUT_REFERENCE, UNSAFE_REFERENCE_URL,
   * INVALID_REFERENCE_IMAGE or UPLOAD_QUOTA_EXCEEDED at the reference's `param`. What is pinned stays so: another replica may be
   * bringing in the same job's. It is let go of once the job is rejected. A job's is called once at a time in a process.
   */
  importAll(
    job: { accountId: string; jobId: string; keyId: string },
    references: readonly ReferenceInput[],
    signal: AbortSignal,
  ): Promise<PinnedReference[]>;
  /** Lets go of the files of a job that has ended, or was rejected. Idempotent. */
  unpin(job: { accountId: string; jobId: string }): Promise<void>;
}
