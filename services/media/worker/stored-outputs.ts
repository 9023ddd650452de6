import { Readable } from "node:stream";
import { piecesOf } from "#kit/base/in-turns.ts";
import { BlobExistsError, type BlobStore } from "#kit/store/blobs.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { GenerationTask } from "../../upstreams/media/port.ts";
import type { JobEvents } from "../events.ts";
import type { FailPoints } from "../fail-points.ts";
import type { Job, JobOutput } from "../jobs/job.ts";
import { outputKey } from "../jobs/outputs.ts";
import { isWorkers } from "../jobs/renewals.ts";
import type { JobStore } from "../jobs/store.ts";
import { untilStored } from "../until-stored.ts";

/** What storing needs. */
interface StoringContext {
  clock: Clock;
  store: JobStore;
  blobs: BlobStore;
  events: JobEvents;
  failPoints: FailPoints;
}

/** What one attempt stores, under names that no other attempt has. */
export interface StoredOutputs {
  /** As `GenerationTask.store`. */
  store: GenerationTask["store"];
  /** Keys of what was stored whole. */
  readonly keys: ReadonlySet<string>;
  /** The job's store is about to be told that they are the job's: from now on only it can say whether they are. */
  offered(): void;
  /** They are the job's. */
  won(outputs: readonly JobOutput[]): void;
  /**
   * The attempt is over: removes what it has stored and what is not the job's, as well as that goes now; what is left then the
   * collection of unused blobs finds. Never rejects.
   */
  discard(): Promise<void>;
}

/** Stores for one attempt, until `signal` aborts or it is over. */
export function createStoredOutputs(
  { jobId, fence }: Job,
  signal: AbortSignal,
  { clock, store, blobs, events, failPoints }: StoringContext,
): StoredOutputs {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const keys = new Set<string>();
  /** Of all that was begun to be stored: a write that failed may have been carried out all the same. */
  const begun = new Set<string>();
  let objects = 0;
  let isOffered = false;
  let kept: readonly JobOutput[] = [];

  const put = async (bytes: Readable) => {
    either.throwIfAborted();
    const blobKey = outputKey(jobId, fence, objects++);
    begun.add(blobKey);
    try {
      const stored = { blobKey, ...(await blobs.put(blobKey, bytes, either)) };
      // The attempt did not wait for it, so that it is not the job's.
      if (over.signal.aborted) await discarding(() => blobs.delete(blobKey));
      over.signal.throwIfAborted();
      return stored;
    } catch (error) {
      // It is not ours.
      if (error instanceof BlobExistsError) begun.delete(blobKey);
      throw error;
    }
  };
  const discarding = (work: () => Promise<void>) =>
    work().catch((error) =>
      events.trouble("outputs of an attempt are left to the collection", jobId, error),
    );
  /** The job's outputs; undefined where the job may still get those of this attempt. */
  const outputsOfJob = async () => {
    const job = await store.find(jobId);
    return job && isWorkers(job, fence) ? undefined : (job?.outputs ?? []);
  };
  const remove = async () => {
    if (begun.size === kept.length) return;
    const needed = isOffered ? await outputsOfJob() : kept;
    if (!needed) return;
    const neededKeys = new Set(needed.map(({ blobKey }) => blobKey));
    for (const key of begun) if (!neededKeys.has(key)) await blobs.delete(key);
  };

  return {
    keys,
    async store(source) {
      either.throwIfAborted();
      // What lies in memory may be all that there is of a generation that was paid for.
      const stored =
        source instanceof Uint8Array
          ? await untilStored({ clock, signal: either }, () => put(Readable.from(piecesOf(source))))
          : await put(source);
      keys.add(stored.blobKey);
      failPoints("stored");
      return stored;
    },
    offered() {
      isOffered = true;
    },
    won(outputs) {
      isOffered = false;
      kept = outputs;
    },
    discard() {
      over.abort(new Error("the attempt is over"));
      return discarding(remove);
    },
  };
}
