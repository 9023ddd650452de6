import { sharedLookMs } from "../limits.ts";
import type { Job } from "./job.ts";
import type { JobStore } from "./store.ts";

/** Tells who waits in this process that a job has changed. */
export interface JobChanges {
  /** Calls `listener` at each change of a job from now on, until the answer is called. */
  on(jobId: string, listener: () => void): () => void;
  /**
   * The job as `read` finds it now, or as another who looks at it in this process found it a moment ago: a hundred who
   * wait for one job read it once. Only a job that somebody listens to is remembered, and never past a change.
   */
  look(
    jobId: string,
    nowMs: number,
    read: () => Promise<Job | undefined>,
  ): Promise<Job | undefined>;
  /** The store, each of whose changes is told. */
  observed(store: JobStore): JobStore;
}

/** Makes it. Changes made by other processes are not heard of. */
export function createJobChanges(): JobChanges {
  const listeners = new Map<string, Set<() => void>>();
  const looks = new Map<string, { atMs: number; job: Promise<Job | undefined> }>();
  const tell = (job: Job | undefined) => {
    if (!job) return job;
    looks.delete(job.jobId);
    for (const listener of listeners.get(job.jobId) ?? []) listener();
    return job;
  };
  return {
    on(jobId, listener) {
      const known = listeners.get(jobId) ?? new Set();
      listeners.set(jobId, known.add(listener));
      return () => {
        known.delete(listener);
        if (known.size > 0 || listeners.get(jobId) !== known) return;
        listeners.delete(jobId);
        looks.delete(jobId);
      };
    },
    look(jobId, nowMs, read) {
      const known = looks.get(jobId);
      if (known && nowMs - known.atMs < sharedLookMs) return known.job;
      const job = read();
      if (!listeners.has(jobId)) return job;
      const look = { atMs: nowMs, job };
      looks.set(jobId, look);
      // A failure is not for others.
      job.catch(() => {
        if (looks.get(jobId) === look) looks.delete(jobId);
      });
      return job;
    },
    observed: (store) => ({
      ...store,
      apply: async (jobId, command) => tell(await store.apply(jobId, command)),
      claim: async (query) => tell(await store.claim(query)),
    }),
  };
}
