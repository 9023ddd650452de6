import type { Clock } from "#kit/time/clock.ts";
import type { JobEvents } from "../events.ts";
import { censusIntervalMs } from "../limits.ts";
import { type JobState, type MediaKind, mediaKinds } from "./job.ts";
import type { JobStore } from "./store.ts";

/** The states of jobs that something is still to be done about. */
export const openStates = ["reserving", "queued", "running", "settling", "failing"] as const;

/** How many jobs of a kind are in a state, and since when the oldest of them is there at all (ms since the epoch). */
export interface Standing {
  kind: MediaKind;
  state: JobState;
  jobs: number;
  oldestCreatedAt: number;
}

/** Tells the events every 15 s how jobs stand, until `signal` aborts. Never rejects. */
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
