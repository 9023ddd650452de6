// The agreement about reports of upstreams between the processes of a mesh. `store-mongo.ts` keeps them in a mesh, and one
// process needs none.

import type { UpstreamReport } from "./figures.ts";

/** The store in which the processes of a mesh exchange reports about upstreams. */
export interface HealthStore {
  /** Replaces a process's last report by the one of `nowMs`. */
  report(process: string, upstreams: readonly UpstreamReport[], nowMs: number): Promise<void>;
  /** The reports of other processes at `sinceMs` or later. */
  others(process: string, sinceMs: number): Promise<UpstreamReport[][]>;
  /** Deletes the reports before `beforeMs`. */
  forget(beforeMs: number): Promise<void>;
}

/** For a process that is the whole mesh: there are no others. */
export const noOthers: HealthStore = {
  report: async () => {},
  others: async () => [],
  forget: async () => {},
};
