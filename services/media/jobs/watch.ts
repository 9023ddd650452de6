// Follows a job for a caller that watches it. Many watches in a process share their reads of the store.

import { equals } from "@bufbuild/protobuf";
import { createSharedLooks } from "#kit/base/batching.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { turn } from "#kit/base/in-turns.ts";
import type { Clock } from "#kit/time/clock.ts";
import {
  type Job as JobMessage,
  JobSchema,
  JobStatus,
} from "#proto/genmesh/media/v1/media_service_pb.ts";
import { sharedLookMs, watchHeartbeatMs, watchPollMs } from "../limits.ts";
import { isShown, type Job, type JobHead } from "./job.ts";
import { markOf } from "./marks.ts";
import { jobMessage } from "./messages.ts";
import type { JobStore } from "./store.ts";
import type { QueuePlace, QueuePlaces } from "./waiting-jobs.ts";

/** The parts that watching needs. */
interface WatchContext {
  clock: Clock;
  changes: JobChanges;
  places: QueuePlaces;
  /** The job, where the watcher may see it. `isFirst`: see {@link JobChanges.look}. */
  find(isFirst: boolean): Promise<Job | undefined>;
  /** Aborts when the watcher leaves, or when this process stops answering. */
  signal: AbortSignal;
}

/**
 * The job now and at each visible change, until it is terminal. Undefined every 15 s of silence. Changes made in this process are seen
 * at once, those of others within a second. Refuses with JOB_NOT_FOUND, even where the job disappears meanwhile.
 */
export async function* watchJob(
  jobId: string,
  { clock, changes, places, find, signal }: WatchContext,
): AsyncGenerator<JobMessage | undefined, void> {
  let changed = Promise.withResolvers<void>();
  const off = changes.on(jobId, () => changed.resolve());
  try {
    let last: JobMessage | undefined;
    let seen: Job | undefined;
    let place: QueuePlace | undefined;
    let spokeAt = clock.steady();
    while (!signal.aborted) {
      const job = await find(!last);
      if (!job || !isShown(job)) refuse(ErrorReason.JOB_NOT_FOUND);
      const placeNow = await places.of(job);
      // An estimate that moves with the time is no change.
      const hasMoved = placeNow?.position !== place?.position;
      if (hasMoved) place = placeNow;
      // The same result as the last time needs no comparison.
      const message = last && job === seen && !hasMoved ? last : jobMessage(job, place);
      seen = job;
      if (!last || (message !== last && !equals(JobSchema, last, message))) {
        last = message;
        spokeAt = clock.steady();
        yield message;
        if (isOver(message)) return;
      } else if (clock.steady() - spokeAt >= watchHeartbeatMs) {
        spokeAt = clock.steady();
        yield undefined;
      }
      await changeOrPause(changed.promise, clock, signal);
      changed = Promise.withResolvers();
    }
  } finally {
    off();
  }
}

function isOver({ status }: JobMessage): boolean {
  return status === JobStatus.COMPLETED || status === JobStatus.FAILED;
}

/** Resolves at a change, after a second, or when `signal` aborts. */
async function changeOrPause(
  change: Promise<void>,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const over = new AbortController();
  const pause = clock.sleep(watchPollMs, AbortSignal.any([signal, over.signal])).catch(() => {});
  await Promise.race([change, pause]);
  over.abort();
}

/** Informs the watches of this process that a job has changed. */
export interface JobChanges {
  /** Calls `listener` at each change of a job from now on, until the returned function is called. */
  on(jobId: string, listener: () => void): () => void;
  /**
   * The job for a watch, without its caller's long texts. `isFirst`: for a watch that has sent nothing yet. It gets a read that begins
   * now or later. So no watch begins with an older state than another answer has shown before. Otherwise it may get what another watch
   * read a moment ago, and never an older state. Only a job with a listener is remembered, and it is read again where its mark has
   * changed. One look reads the marks of all of them. So many watches, of many jobs or of one, cost next to nothing while nothing
   * changes. `steadyMs` is by the monotonic clock.
   */
  look(
    jobId: string,
    asked: { isFirst: boolean; steadyMs: number },
    store: Pick<JobStore, "findWithoutText" | "marks">,
  ): Promise<Job | undefined>;
  /** The store, with each of its changes reported. */
  observed(store: JobStore): JobStore;
}

/** A job that was read for its watches. */
interface Known {
  atMs: number;
  job: Promise<Job | undefined>;
  /** Undefined until it was read, and where it does not exist. */
  mark: string | undefined;
}

/** Makes it. Changes made by other processes are not reported. */
export function createJobChanges(): JobChanges {
  const listeners = new Map<string, Set<() => void>>();
  const known = new Map<string, Known>();
  let marks: { atMs: number; found: Promise<Map<string, string>> } | undefined;
  const tell = <J extends JobHead>(job: J | undefined): J | undefined => {
    // A heartbeat changes no shown value.
    if (!job || known.get(job.jobId)?.mark === markOf(job)) return job;
    known.delete(job.jobId);
    for (const listener of listeners.get(job.jobId) ?? []) listener();
    return job;
  };
  const readMarks = (steadyMs: number, store: Pick<JobStore, "marks">) => {
    if (marks && steadyMs - marks.atMs < sharedLookMs) return marks.found;
    const look = { atMs: steadyMs, found: store.marks([...known.keys()]) };
    marks = look;
    // A failure must not reach those that look later.
    look.found.catch(() => {
      if (marks === look) marks = undefined;
    });
    return look.found;
  };
  // An embedded store reads a long job at once, which takes some ms. Where many are requested at the same moment, one is read in each
  // turn of the event loop, so that other work gets its turn.
  let turns = Promise.resolve();
  // Of one job, one read at a time: two that overlap may answer in either order.
  const looks = createSharedLooks<Job | undefined>();
  const read = (jobId: string, steadyMs: number, store: Pick<JobStore, "findWithoutText">) =>
    looks.add(jobId, async () => {
      turns = turns.then(() => turn());
      await turns;
      const job = store.findWithoutText(jobId);
      if (listeners.has(jobId)) remember(jobId, { atMs: steadyMs, job, mark: undefined });
      return job;
    });
  const remember = (jobId: string, one: Known) => {
    known.set(jobId, one);
    one.job.then(
      (found) => {
        one.mark = found && markOf(found);
      },
      () => {
        if (known.get(jobId) === one) known.delete(jobId);
      },
    );
  };
  return {
    on(jobId, listener) {
      const all = listeners.get(jobId) ?? new Set();
      listeners.set(jobId, all.add(listener));
      return () => {
        all.delete(listener);
        if (all.size > 0 || listeners.get(jobId) !== all) return;
        listeners.delete(jobId);
        known.delete(jobId);
      };
    },
    async look(jobId, { isFirst, steadyMs }, store) {
      const one = isFirst ? undefined : known.get(jobId);
      if (!one) return read(jobId, steadyMs, store);
      const job = await one.job;
      if (steadyMs - one.atMs < sharedLookMs) return job;
      const mark = (await readMarks(steadyMs, store)).get(jobId);
      const isSame = mark === one.mark && known.get(jobId) === one;
      if (isSame) return job;
      // Another watch may have read it meanwhile.
      if (known.get(jobId) === one) known.delete(jobId);
      return (known.get(jobId) ?? { job: read(jobId, steadyMs, store) }).job;
    },
    observed: (store) => ({
      ...store,
      apply: async (jobId, command) => tell(await store.apply(jobId, command)),
      renew: async (jobId, command) => tell(await store.renew(jobId, command)),
      claim: async (query) => tell(await store.claim(query)),
    }),
  };
}
