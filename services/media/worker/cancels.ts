// Looks whether jobs that this worker has under way were cancelled, and stops their attempts.

import type { Clock } from "#kit/time/clock.ts";
import type { JobEvents } from "../events.ts";
import { wasCancelled } from "../jobs/job.ts";
import type { JobStore } from "../jobs/store.ts";
import { cancelLookMs } from "../limits.ts";
import type { Attempt } from "./attempt.ts";

/** Informs a worker's attempts that their jobs were cancelled, in this process or another one. */
export interface CancelWatch {
  /** An attempt has begun or ended. */
  changed(): void;
}

/** Makes it. While there are attempts, it looks every {@link cancelLookMs}, once for all of them, by the ids of their jobs. */
export function createCancelWatch(
  attempts: ReadonlySet<Attempt>,
  { clock, store, events }: { clock: Clock; store: JobStore; events: JobEvents },
): CancelWatch {
  let idle: AbortController | undefined;

  const look = async () => {
    const fences = await store.runningFences([...attempts].map(({ job }) => job.jobId));
    for (const attempt of attempts) {
      const { jobId, fence } = attempt.job;
      if (fences.get(jobId) === fence) continue;
      const job = await store.findWithoutText(jobId);
      if (job && wasCancelled(job)) attempt.cancel();
    }
  };
  const watch = async ({ signal }: AbortController) => {
    while (!signal.aborted) {
      await clock.sleep(cancelLookMs, signal).catch(() => {});
      if (signal.aborted) return;
      await look().catch((error) =>
        events.trouble("cancelled jobs could not be looked for", undefined, error),
      );
    }
  };
  return {
    changed() {
      if (attempts.size > 0 && !idle) {
        idle = new AbortController();
        void watch(idle);
      } else if (attempts.size === 0) {
        idle?.abort();
        idle = undefined;
      }
    },
  };
}
