// Writes down how far a job has come, not more often than callers look.

import type { Clock } from "#kit/time/clock.ts";
import type { Job } from "../jobs/job.ts";
import type { JobStore } from "../jobs/store.ts";
import { progressEveryMs } from "../limits.ts";

/** Writes an attempt's progress down, as often as a caller might look. */
export interface Progress extends AsyncDisposable {
  /** Percent. May be called often. */
  report(percent: number): void;
}

/** Makes it for one attempt. */
export function createProgress(
  { jobId, fence }: Job,
  signal: AbortSignal,
  { clock, store }: { clock: Clock; store: JobStore },
): Progress {
  let latest = 0;
  let stored = 0;
  let writing: Promise<void> | undefined;
  const done = new AbortController();

  const write = async () => {
    while (latest > stored && !signal.aborted && !done.signal.aborted) {
      const percent = latest;
      // It is only for display. A value that is not written now is written with the next one.
      await store.renew(jobId, { kind: "progress", fence, percent }).catch(() => undefined);
      stored = percent;
      await clock.sleep(progressEveryMs, AbortSignal.any([signal, done.signal])).catch(() => {});
    }
  };
  return {
    report(percent) {
      latest = Math.max(latest, Math.floor(percent));
      if (latest <= stored || writing) return;
      writing = write().finally(() => {
        writing = undefined;
      });
    },
    async [Symbol.asyncDispose]() {
      done.abort();
      await writing;
    },
  };
}
