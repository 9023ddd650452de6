import type { LineName } from "./lines.ts";
import type { Figure, Sample } from "./rounds.ts";
import type { TargetName } from "./target.ts";

/** One figure of the report, and the figure that it is compared with. */
export interface Goal {
  line: LineName | "starts";
  label: string;
  unit: "a second" | "ms" | "µs" | "MB/s" | "MiB";
  /** The figure of one target in a round. */
  value(round: Round, name: TargetName): number;
  /** The other side of the ratio: Portkey in the same round, or a figure of the target itself. */
  base: TargetName | "own JSON" | "raw store";
  /** The ratio that is demanded. Undefined: none. */
  one?: number;
  mesh?: number;
  /** The bound for the mesh in the goal's own unit, in place of a ratio. */
  meshAtMost?: number;
  /** Is more of it better? */
  isMoreBetter: boolean;
}

/** One round of a line. */
export type Round = ReadonlyMap<string, Sample>;

const of =
  (figure: Figure) =>
  (round: Round, name: TargetName): number =>
    round.get(name)?.[figure] ?? Number.NaN;
/** The part that is more than without the gateway. */
const added = (figure: Figure) => (round: Round, name: TargetName) =>
  of(figure)(round, name) - of(figure)(round, "direct");

const [microsPerSecond, toPortkey] = [1e6, { base: "portkey" } as const];
const more = { ...toPortkey, isMoreBetter: true, unit: "a second" } as const;
const less = { ...toPortkey, isMoreBetter: false } as const;

/** The goals, each with every feature on: keys, limits, catalog, hold, settlement, journal, logs. */
export const goals: readonly Goal[] = [
  {
    ...more,
    line: "json",
    label: "JSON, 32 in flight: requests of one core",
    value: of("requestsPerCoreSecond"),
    one: 3,
    mesh: 1.5,
  },
  {
    ...more,
    line: "json",
    label: "the same, as observed",
    value: of("requestsPerSecond"),
  },
  {
    ...more,
    base: "traced",
    line: "json",
    label: "JSON untraced (to itself, a tenth of it traced): requests of one core",
    value: (round, name) =>
      name === "mesh" ? Number.NaN : of("requestsPerCoreSecond")(round, name),
    isMoreBetter: false,
    one: 1.05,
  },
  {
    ...more,
    line: "prompts",
    label: "64 KiB prompts, 32 in flight: requests of one core",
    value: of("requestsPerCoreSecond"),
    one: 3.5,
    mesh: 2,
  },
  {
    ...more,
    line: "prompts",
    label: "the same, as observed",
    value: of("requestsPerSecond"),
  },
  {
    ...less,
    line: "latency",
    label: "JSON, 1 in flight: added to the median",
    unit: "ms",
    value: added("p50Ms"),
    one: 0.6,
    meshAtMost: 3,
  },
  {
    ...less,
    line: "first",
    label: "first delta, 1 in flight: added to the median",
    unit: "ms",
    value: added("firstDeltaMs"),
    one: 0.025,
    meshAtMost: 3,
  },
  {
    ...less,
    line: "paced",
    label: "1,000 deltas a second: CPU time of a delta",
    unit: "µs",
    value: (round, name) => microsPerSecond / of("deltasPerCoreSecond")(round, name),
    one: 0.5,
    mesh: 0.8,
  },
  {
    ...more,
    line: "deltas",
    label: "deltas, 32 streams: of one core",
    value: of("deltasPerCoreSecond"),
    one: 1.8,
    mesh: 1,
  },
  {
    ...more,
    line: "deltas",
    label: "the same, as observed",
    value: of("deltasPerSecond"),
  },
  {
    ...more,
    base: "own JSON",
    line: "jobs",
    label: "jobs taken in, 32 in flight (to its own JSON)",
    value: of("requestsPerSecond"),
    one: 1,
    mesh: 0.7,
  },
  {
    ...more,
    base: "raw store",
    line: "ranges",
    label: "4 MiB ranges, 4 in flight (to the raw store)",
    unit: "MB/s",
    value: of("megabytesPerSecond"),
    one: 0.4,
    mesh: 0.4,
  },
  { ...less, line: "starts", label: "start", unit: "ms", value: of("startMs"), one: 1.2 },
  {
    ...less,
    line: "starts",
    label: "memory, nothing to do",
    unit: "MiB",
    value: of("idleMib"),
    one: 1.6,
  },
];
