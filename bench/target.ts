import type { FloorLayer } from "./floor.ts";
import type { RequestKind } from "./requests.ts";

/** What a load can be put on: genmesh, its peer, or what lies behind them. */
export interface Target {
  name: TargetName;
  /** Default: this machine. */
  host?: string;
  port: number;
  /** What it can be asked, as it goes over the wire; the requests of a kind are taken in turn. */
  requests: Partial<Record<RequestKind, readonly Buffer[]>>;
  /** Whose CPU time it costs; empty where it is not measured. */
  pids: readonly number[];
}

/**
 * `direct`: the model server alone. `one` and `mesh`: genmesh; `traced`: `one` with tracing on. `folder` and `bucket`: what keeps the bytes of the one and
 * the other. `writes`: the mesh's database, written to by the driver alone. `floor-…`: the ground below one process, see floor.ts.
 */
export type TargetName =
  | "direct"
  | "portkey"
  | "one"
  | "traced"
  | "mesh"
  | "folder"
  | "bucket"
  | "writes"
  | "gomodel"
  | `floor-${FloorLayer}`;
