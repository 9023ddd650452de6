// Deletes an ended job for its caller: hides it, then removes texts, outputs and references.

import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { BlobStore } from "#kit/store/blobs.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { JobEvents } from "../events.ts";
import type { FailPoints } from "../fail-points.ts";
import type { ReferenceImporter } from "../references/port.ts";
import { retireOldest } from "./finish.ts";
import { isShown, isUnannounced, type Job } from "./job.ts";
import type { JobStore } from "./store.ts";

/** The parts that deleting needs. */
export interface EraseContext {
  clock: Clock;
  store: JobStore;
  blobs: BlobStore;
  importer: Pick<ReferenceImporter, "unpin">;
  events: JobEvents;
  failPoints: FailPoints;
  /** Writes the end of a job into the webhooks. */
  announce(job: Job): Promise<void>;
}

/**
 * Deletes a terminal job. It is hidden from now on, and the caller's texts and the outputs are removed. The sweeper completes steps
 * that fail after the first. A job that has not ended is refused with JOB_NOT_DELETABLE, and a missing one with JOB_NOT_FOUND.
 */
export async function deleteJob(jobId: string, context: EraseContext): Promise<void> {
  const { clock, store, events, failPoints } = context;
  const ended = await store.find(jobId);
  // Its end is still announced. The next step refuses a job whose end is not written down.
  if (ended && isUnannounced(ended)) await context.announce(ended);
  const deleted = await store.apply(jobId, { kind: "delete", now: clock.now() });
  if (!deleted) {
    const job = await store.find(jobId);
    refuse(job && isShown(job) ? ErrorReason.JOB_NOT_DELETABLE : ErrorReason.JOB_NOT_FOUND);
  }
  failPoints("deleted");
  events.deleted(deleted);
  await erase(deleted, context).catch((error) =>
    events.trouble("a deleted job's files are left to the sweeper", jobId, error),
  );
  await retireOldest(deleted, "deleted", context);
}

/** Removes the bytes of a deleted job's outputs, and unpins its references. */
export async function erase(job: Job, context: EraseContext): Promise<void> {
  const { accountId, jobId, outputs, pinsHeld } = job;
  for (const { blobKey } of outputs) await context.blobs.delete(blobKey);
  if (pinsHeld) await context.importer.unpin({ accountId, jobId });
  await context.store.apply(jobId, { kind: "erased" });
  context.failPoints("erased");
}
