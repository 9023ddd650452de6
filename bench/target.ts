import type { FloorLayer } from "./floor.ts";
import type { RequestKind } from "./requests.ts";

/** A target of a load: genmesh, its peer, or a server behind them. */
export interface Target {
  name: TargetName;
  /** Default: this machine. */
  host?: string;
  port: number;
  /** The possible requests in the bytes of the wire. Those of a kind are used in turn. */
  requests: Partial<Record<RequestKind, readonly Buffer[]>>;
  /** The processes whose CPU time is measured. Empty where it is not. */
  pids: readonly number[];
}

/**
 * `direct`: the model server alone. `one` and `mesh`: genmesh. `traced`: `one` with tracing on. `folder` and `bucket`: their stores of
 * bytes. `writes`: the mesh's database, used by the driver alone. `floor-…`: the least work below one process, see floor.ts.
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
  | "litellm"
  | `floor-${FloorLayer}`;
