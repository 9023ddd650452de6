import type { Job } from "./job.ts";
import type { JobStore } from "./store.ts";

/** Tells who waits in this process that a job has changed. */
export interface JobChanges {
  /** Calls `listener` at each change of a job from now on, until the answer is called. */
  on(jobId: string, listener: () => void): () => void;
  /** The store, each of whose changes is told. */
  observed(store: JobStore): JobStore;
}

/** Makes it. Changes made by other processes are not heard of. */
export function createJobChanges(): JobChanges {
  const listeners = new Map<string, Set<() => void>>();
  const tell = (job: Job | undefined) => {
    if (job) for (const listener of listeners.get(job.jobId) ?? []) listener();
    return job;
  };
  return {
    on(jobId, listener) {
      const known = listeners.get(jobId) ?? new Set();
      listeners.set(jobId, known.add(listener));
      return () => {
        known.delete(listener);
        if (known.size === 0 && listeners.get(jobId) === known) listeners.delete(jobId);
      };
    },
    observed: (store) => ({
      ...store,
      apply: async (jobId, command) => tell(await store.apply(jobId, command)),
      claim: async (query) => tell(await store.claim(query)),
    }),
  };
}
