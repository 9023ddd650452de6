import type { UpstreamReport } from "./figures.ts";

/** Where the processes of a mesh tell each other how upstreams do. */
export interface HealthStore {
  /** Puts what a process tells at `nowMs` in the place of what it told before. */
  report(process: string, upstreams: readonly UpstreamReport[], nowMs: number): Promise<void>;
  /** What the other processes told at `sinceMs` or later. */
  others(process: string, sinceMs: number): Promise<UpstreamReport[][]>;
  /** Forgets what was told before `beforeMs`. */
  forget(beforeMs: number): Promise<void>;
}

/** For a process that is all of the mesh: there are no others. */
export const noOthers: HealthStore = {
  report: async () => {},
  others: async () => [],
  forget: async () => {},
};
