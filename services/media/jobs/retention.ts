import type { BlobStore, ListedBlob } from "#kit/blobs.ts";
import type { Clock } from "#kit/clock.ts";
import type { JobEvents } from "../events.ts";
import type { FailPoints } from "../fail-points.ts";
import { collectIntervalMs, minCollectAgeMs } from "../limits.ts";
import type { Job } from "./job.ts";
import type { JobStore } from "./store.ts";

/** Whoever writes blobs says which of them it still needs. */
export interface BlobOwner {
  /** Keys that begin so are its own. */
  prefix: string;
  /** May the bytes of this key be wanted, now or later? */
  isReferenced(blobKey: string): Promise<boolean>;
}

/** What removing needs. */
export interface RetentionContext {
  clock: Clock;
  store: JobStore;
  blobs: BlobStore;
  /** Blobs of others are left alone. */
  owners: readonly BlobOwner[];
  events: JobEvents;
  failPoints: FailPoints;
}

/** Removes what is over. */
export interface Retention {
  /** Removes a job whose time is over: its record, which makes its idempotency key free, and then its outputs. */
  forget(job: Job): Promise<void>;
  /** Looks once at every blob, and removes those that are old enough and that nobody needs. */
  collect(signal: AbortSignal): Promise<void>;
  /** Collects every hour until `signal` aborts. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
}

/** Makes it. */
export function createRetention(context: RetentionContext): Retention {
  const { clock, store, blobs, events, failPoints } = context;

  const collect = async (signal: AbortSignal) => {
    // All that is younger belongs, perhaps, to work that has not written it down yet.
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
      if (!(await store.forget(job.jobId, clock.now()))) return;
      failPoints("forgotten");
      // What a death leaves here, the next collection finds.
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
