// Reports now and then how many jobs are in each state, for metrics.

import type { Clock } from "#kit/time/clock.ts";
import type { JobEvents } from "../events.ts";
import { censusIntervalMs } from "../limits.ts";
import { type JobState, type MediaKind, mediaKinds } from "./job.ts";
import type { JobStore } from "./store.ts";

/** The states of jobs that need further work. */
export const openStates = ["reserving", "queued", "running", "settling", "failing"] as const;

/** The number of jobs of a kind in a state, and when the oldest of them was made (ms since the epoch). */
export interface Standing {
  kind: MediaKind;
  state: JobState;
  jobs: number;
  oldestCreatedAt: number;
}

/** Reports these numbers to the events every 15 s, until `signal` aborts. Never rejects. */
export async function takeCensus(
  { clock, store, events }: { clock: Clock; store: JobStore; events: JobEvents },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      const found = await store.census();
      for (const kind of mediaKinds) {
        for (const state of openStates) {
          const here = found.find((one) => one.kind === kind && one.state === state);
          const ageMs = here ? Math.max(0, clock.now() - here.oldestCreatedAt) : 0;
          events.standing(kind, state, here?.jobs ?? 0, ageMs);
        }
      }
    } catch (error) {
      events.trouble("jobs could not be counted", undefined, error);
    }
    await clock.sleep(censusIntervalMs, signal).catch(() => {});
  }
}
