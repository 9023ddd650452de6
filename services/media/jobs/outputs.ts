// Names, checks and finds the output files of jobs, and removes jobs and blobs whose time is over.

import type { Ids } from "#kit/base/ids.ts";
import type { Principal } from "#kit/rpc/principal.ts";
import type { BlobStore, ListedBlob } from "#kit/store/blobs.ts";
import type { Clock } from "#kit/time/clock.ts";
import { createLeaseTime, erasingPatienceMs } from "#kit/time/lease-time.ts";
import { FileArea } from "#proto/genmesh/media/v1/media_service_pb.ts";
import {
  type GeneratedOutput,
  GenerationError,
  type GenerationRequest,
} from "../../upstreams/media/port.ts";
import type { JobEvents } from "../events.ts";
import type { FailPoints } from "../fail-points.ts";
import type { GeneratedFileName, LocatedFile } from "../files/context.ts";
import { collectIntervalMs, lentMs, minCollectAgeMs } from "../limits.ts";
import type { PinnedReference } from "../references/port.ts";
import type { Job, MediaKind } from "./job.ts";
import type { JobStore } from "./store.ts";

/** Prefix of the blob keys of outputs. */
const outputsPrefix = "outputs/";

/**
 * A write-once name for an attempt's object, new at each call. No two attempts ever have the same, not even where a restored database
 * gives a fence a second time.
 */
export function outputKey({ jobId, fence }: Pick<Job, "jobId" | "fence">, ids: Ids): string {
  return `${outputsPrefix}${jobId}/${fence}-${ids.make("output")}`;
}

/**
 * Checks the outputs of an upstream's driver. A job must have the requested number of outputs, or some of its images where the others
 * were refused. The attempt must have stored them.
 */
export function checkOutputs(
  outputs: readonly GeneratedOutput[],
  stored: ReadonlySet<string>,
  request: GenerationRequest,
): void {
  const wanted = request.kind === "image" ? request.count : 1;
  const keys = new Set(outputs.map(({ blobKey }) => blobKey));
  const isDue = outputs.length > 0 && outputs.length <= wanted && keys.size === outputs.length;
  if (isDue && outputs.every(({ blobKey }) => stored.has(blobKey))) return;
  throw new GenerationError("failed", "the outputs are not those that were asked for");
}

const areas: Readonly<Partial<Record<FileArea, MediaKind>>> = {
  [FileArea.IMAGES]: "image",
  [FileArea.VIDEOS]: "video",
  [FileArea.MUSIC]: "music",
};

/** An output of a completed job of the principal's key. Undefined for everything else. */
export async function locateOutput(
  store: JobStore,
  { area, parentId, fileId }: GeneratedFileName,
  { keyId }: Principal,
  now: number,
): Promise<LocatedFile | undefined> {
  const kind = areas[area];
  const job = kind && (await store.findWithoutText(parentId));
  if (!job || job.spec.kind !== kind || job.keyId !== keyId) return undefined;
  if (job.state !== "completed" || (job.expiresAt ?? now) < now) return undefined;
  const output = job.outputs.find((one) => one.fileId === fileId);
  if (!output) return undefined;
  const { blobKey, mimeType, sizeBytes, sha256 } = output;
  return { blobKey, mimeType, sizeBytes, sha256, createdAt: job.completedAt ?? job.createdAt };
}

/**
 * An output of a completed job of the key, as a reference. Its job is kept for as long as one that begins now may need it. Undefined
 * for everything else.
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

/** The blobs that jobs still need: final outputs, and those that the present attempt of a running job stores. */
export function outputsOwner(store: JobStore): BlobOwner {
  return {
    prefix: outputsPrefix,
    async isReferenced(blobKey) {
      const [jobId = "", name = ""] = blobKey.slice(outputsPrefix.length).split("/");
      const job = await store.findWithoutText(jobId);
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

/** A part of this service that writes blobs, and knows which of them it still needs. */
interface BlobOwner {
  /** Keys with this prefix belong to it. */
  prefix: string;
  /** May the bytes of this key be needed, now or later? */
  isReferenced(blobKey: string): Promise<boolean>;
}

/** The parts that removing needs. */
interface RetentionContext {
  clock: Clock;
  store: JobStore;
  blobs: BlobStore;
  /** Blobs of others are not touched. */
  owners: readonly BlobOwner[];
  events: JobEvents;
  failPoints: FailPoints;
}

/** Removes jobs and blobs whose time is over. */
export interface Retention {
  /** Removes a job whose time is over: its record, which frees its idempotency key, and then its outputs. */
  forget(job: Job): Promise<void>;
  /** Checks every blob once. Removes those that are old enough and that their owner does not need. */
  collect(signal: AbortSignal): Promise<void>;
  /** Collects every hour until `signal` aborts. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
}

/** Makes it. */
export function createRetention(context: RetentionContext): Retention {
  const { clock, store, blobs, events, failPoints } = context;
  const erasingTime = createLeaseTime(clock, erasingPatienceMs);

  const collect = async (signal: AbortSignal) => {
    // Younger blobs may belong to work that has not written them down yet.
    const before = clock.now() - minCollectAgeMs;
    for (const owner of context.owners) {
      for await (const blob of blobs.list(owner.prefix)) {
        if (signal.aborted) return;
        if (await isGarbage(blob, before, owner)) {
          await blobs.delete(blob.key);
          events.collected(blob.key);
        }
      }
    }
  };
  return {
    async forget(job) {
      if (!(await store.forget(job.jobId, erasingTime()))) return;
      failPoints("forgotten");
      // If the process dies here, the next collection finds the rest.
      for (const { blobKey } of job.outputs) await blobs.delete(blobKey);
      events.forgotten(job);
    },
    collect,
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(collectIntervalMs, signal).catch(() => {});
        if (signal.aborted) return;
        await collect(signal).catch((error) => {
          events.trouble("collecting blobs failed", undefined, error);
        });
      }
    },
  };
}

async function isGarbage(blob: ListedBlob, before: number, owner: BlobOwner): Promise<boolean> {
  return blob.storedAtMs < before && !(await owner.isReferenced(blob.key));
}
