import type { Principal } from "#kit/rpc/principal.ts";
import { FileArea } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { GeneratedFileName, LocatedFile } from "../files/context.ts";
import { lentMs } from "../limits.ts";
import type { PinnedReference } from "../references/port.ts";
import type { Job, MediaKind } from "./job.ts";
import type { BlobOwner } from "./retention.ts";
import type { JobStore } from "./store.ts";

/** Blob keys of outputs begin so. */
export const outputsPrefix = "outputs/";

/** The write-once name of an attempt's object: no two attempts ever have the same. */
export function outputKey(jobId: string, fence: number, index: number): string {
  return `${outputsPrefix}${jobId}/${fence}-${index}`;
}

const areas: Readonly<Partial<Record<FileArea, MediaKind>>> = {
  [FileArea.IMAGES]: "image",
  [FileArea.VIDEOS]: "video",
  [FileArea.MUSIC]: "music",
};

/** An output of a completed job of the principal's key; undefined for everything else alike. */
export async function locateOutput(
  store: JobStore,
  { area, parentId, fileId }: GeneratedFileName,
  { keyId }: Principal,
  now: number,
): Promise<LocatedFile | undefined> {
  const kind = areas[area];
  const job = kind && (await store.find(parentId));
  if (!job || job.spec.kind !== kind || job.keyId !== keyId) return undefined;
  if (job.state !== "completed" || (job.expiresAt ?? now) < now) return undefined;
  const output = job.outputs.find((one) => one.fileId === fileId);
  if (!output) return undefined;
  const { blobKey, mimeType, sizeBytes, sha256 } = output;
  return { blobKey, mimeType, sizeBytes, sha256, createdAt: job.completedAt ?? job.createdAt };
}

/**
 * An output of a completed job of the key's, as a reference: its job is kept for as long as one that begins now may need
 * it. Undefined for everything else alike.
 */
export async function lendOutput(
  store: JobStore,
  { fileId, jobId, keyId }: { fileId: string; jobId: string | undefined; keyId: string },
  now: number,
): Promise<PinnedReference | undefined> {
  const job = await store.findByOutput(fileId);
  if (!job || job.keyId !== keyId || (jobId ?? job.jobId) !== job.jobId) return undefined;
  const output = job.outputs.find((one) => one.fileId === fileId);
  const kept = await store.apply(job.jobId, { kind: "keep", until: now + lentMs, now });
  if (!output || !kept) return undefined;
  const { blobKey, mimeType, sizeBytes, width, height } = output;
  return { fileId, blobKey, mimeType, sizeBytes, width, height };
}

/** What jobs still need of their blobs: what has won, and whatever the present attempt of a running job stores. */
export function outputsOwner(store: JobStore): BlobOwner {
  return {
    prefix: outputsPrefix,
    async isReferenced(blobKey) {
      const [jobId = "", name = ""] = blobKey.slice(outputsPrefix.length).split("/");
      const job = await store.find(jobId);
      if (!job) return false;
      if (job.state === "running") return name.startsWith(`${job.fence}-`);
      return job.outputs.some((output) => output.blobKey === blobKey);
    },
  };
}

/** May a job still open its references? */
export function needsReferences(job: Job | undefined): boolean {
  if (!job) return false;
  return job.state === "reserving" || job.state === "queued" || job.state === "running";
}
