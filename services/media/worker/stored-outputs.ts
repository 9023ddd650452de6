// Stores what an upstream made under names of this attempt alone, and removes it where the job does not get it.

import { Readable } from "node:stream";
import type { Ids } from "#kit/base/ids.ts";
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
import type { Marks } from "./marks.ts";

/** The parts that storing needs. */
interface StoringContext {
  clock: Clock;
  ids: Ids;
  store: JobStore;
  blobs: BlobStore;
  events: JobEvents;
  failPoints: FailPoints;
  marks: Marks;
}

/** The outputs that one attempt stores, under names that no other attempt has. */
export interface StoredOutputs {
  /** See `GenerationTask.store`. */
  store: GenerationTask["store"];
  /** Keys of outputs that were stored completely. */
  readonly keys: ReadonlySet<string>;
  /** The outputs are about to be written into the job. From now on only the job's store knows whether they are in it. */
  offered(): void;
  /** The outputs are in the job. */
  won(outputs: readonly JobOutput[]): void;
  /**
   * The attempt is over. Removes its stored outputs that are not in the job, as far as that works now. The collection of unused blobs
   * finds the rest. Never rejects.
   */
  discard(): Promise<void>;
}

/** Stores for one attempt, until `signal` aborts or the attempt is over. */
export function createStoredOutputs(
  job: Job,
  signal: AbortSignal,
  { clock, ids, store, blobs, events, failPoints, marks }: StoringContext,
): StoredOutputs {
  const { jobId, fence } = job;
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const keys = new Set<string>();
  /** Keys of all outputs whose storing was begun. A write that failed may still have been carried out. */
  const begun = new Set<string>();
  let isOffered = false;
  let kept: readonly JobOutput[] = [];

  const put = async (bytes: Readable) => {
    either.throwIfAborted();
    const blobKey = outputKey(job, ids);
    begun.add(blobKey);
    try {
      const stored = { blobKey, ...(await blobs.put(blobKey, bytes, either)) };
      // The attempt did not wait for it, so it is not in the job.
      if (over.signal.aborted) await discarding(() => blobs.delete(blobKey));
      over.signal.throwIfAborted();
      return stored;
    } catch (error) {
      // The object is another attempt's.
      if (error instanceof BlobExistsError) begun.delete(blobKey);
      throw error;
    }
  };
  const discarding = (work: () => Promise<void>) =>
    work().catch((error) =>
      events.trouble("outputs of an attempt are left to the collection", jobId, error),
    );
  /** The job's outputs. Undefined where the job may still get those of this attempt. */
  const outputsOfJob = async () => {
    const found = await store.find(jobId);
    return found && isWorkers(found, fence) ? undefined : (found?.outputs ?? []);
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
    async store(source, mimeType) {
      either.throwIfAborted();
      const bytes = await marks.mark(source, mimeType, job);
      // The bytes in memory may be the only copy of a generation that was paid for.
      const stored =
        bytes instanceof Readable
          ? await put(bytes)
          : await untilStored({ clock, signal: either }, () => put(Readable.from(piecesIn(bytes))));
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

async function* piecesIn(parts: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield* piecesOf(part);
}
