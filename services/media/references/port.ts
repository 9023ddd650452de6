// Says what a job may refer to, and what bringing these references into the account's storage must promise. `files/importer.ts`
// does it. Jobs know only this.

/** A reference in the caller's form, with checked syntax. */
export type ReferenceInput = (
  | FileReference
  /** A base64 image data URI, or a public http(s) URL. */
  | { kind: "url"; url: string; param: string }
) & {
  /** It is no image of its own, but says which pixels of the first one may change. It is the last one. */
  isMask?: true;
};

/** A file of the account's storage, or an output of the key's. */
export interface FileReference {
  kind: "file";
  fileId: string;
  param: string;
  /** The file must be this job's output. */
  jobId?: string;
}

/** A verified image that a job uses: from the account's file storage, or made by another job of its key. */
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
   * Finds files and outputs, whose bytes are used in their place. Imports URLs and data URIs under ids made of `jobId` and index, so
   * that a repeat imports once. Counts them against the quota, once for the same bytes of one account. Pins all of them for `jobId`: a
   * pinned file's bytes stay even where it is deleted. Refuses with REFERENCE_NOT_FOUND, INVALID_INPUT_REFERENCE, UNSAFE_REFERENCE_URL,
   * INVALID_REFERENCE_IMAGE (also for a mask of another size than the first image, or without alpha) or UPLOAD_QUOTA_EXCEEDED at the
   * reference's `param`. After a refusal, pinned files stay pinned, because another replica may be importing for the same job. They are
   * unpinned once the job is rejected. A process makes one call at a time for a job.
   */
  importAll(
    job: { accountId: string; jobId: string; keyId: string },
    references: readonly ReferenceInput[],
    signal: AbortSignal,
  ): Promise<PinnedReference[]>;
  /** Unpins the files of a job that has ended, or was rejected. Idempotent. */
  unpin(job: { accountId: string; jobId: string }): Promise<void>;
}
