import { runLoad } from "./load.ts";
import { cpuMicrosOf } from "./processes.ts";
import type { RequestKind } from "./requests.ts";
import type { Contestant } from "./rounds.ts";
import type { Target, TargetName } from "./target.ts";

/** One load for several targets. */
export interface Line {
  kind: RequestKind;
  inFlight: number;
  /** The targets, in this order. */
  targets: readonly TargetName[];
}

const [few, usual, many] = [1, 4, 32];
/** Streams at once, of 50 deltas a second each: 1,000 a second. */
const pacedStreams = 20;

const peers = ["direct", "portkey", "gomodel", "litellm"] as const;
const layers = ["floor-answer", "floor-parse", "floor-forward", "floor-write"] as const;
const floor = "floor-write";

/** The lines by their names, in the order in which they are run. Jobs are last, because accepted jobs wait from then on and cost time. */
export const lines = {
  json: { kind: "json", inFlight: many, targets: [...peers, "one", "traced", "mesh"] },
  layers: { kind: "json", inFlight: many, targets: [...layers, "one"] },
  latency: { kind: "json", inFlight: few, targets: [...peers, floor, "one", "mesh", "writes"] },
  prompts: { kind: "prompt", inFlight: many, targets: [...peers, floor, "one", "mesh"] },
  first: { kind: "stream", inFlight: few, targets: [...peers, floor, "one", "mesh"] },
  paced: { kind: "paced", inFlight: pacedStreams, targets: [...peers, floor, "one", "mesh"] },
  deltas: { kind: "stream", inFlight: many, targets: [...peers, floor, "one", "mesh"] },
  ranges: { kind: "range", inFlight: usual, targets: ["folder", "one", "bucket", "mesh"] },
  jobs: { kind: "submit", inFlight: many, targets: ["one", "mesh"] },
} as const satisfies Record<string, Line>;

/** The name of a line. */
export type LineName = keyof typeof lines;

/** A target with the load of a line. */
export function contestant(target: Target, { kind, inFlight }: Line): Contestant<TargetName> {
  const { name, pids, host, port } = target;
  const requests = target.requests[kind];
  if (!requests) throw new Error(`${name} cannot be asked for ${kind}`);
  return {
    name,
    async measure(seconds) {
      const where = { ...(host === undefined ? {} : { host }), port };
      const before = cpuMicrosOf(pids);
      const result = await runLoad({ ...where, requests, inFlight, seconds });
      const coreSeconds = (cpuMicrosOf(pids) - before) / 1e6;
      const { requestsPerSecond, latencyMs, firstDeltaMs, megabytesPerSecond } = result;
      return {
        requestsPerSecond,
        p50Ms: latencyMs.p50,
        megabytesPerSecond,
        failures: result.failures,
        ...(pids.length > 0 ? { requestsPerCoreSecond: result.requests / coreSeconds } : {}),
        ...(firstDeltaMs === undefined ? {} : deltaFigures(result, firstDeltaMs, coreSeconds)),
      };
    },
  };
}

function deltaFigures(
  { deltas, deltasPerSecond }: { deltas: number; deltasPerSecond: number },
  firstDeltaMs: number,
  coreSeconds: number,
) {
  return {
    firstDeltaMs,
    deltasPerSecond,
    ...(coreSeconds > 0 ? { deltasPerCoreSecond: deltas / coreSeconds } : {}),
  };
}
