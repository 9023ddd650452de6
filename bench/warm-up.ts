import { setTimeout as delay } from "node:timers/promises";
import { runLoad } from "./load.ts";
import { cpuMicrosOf } from "./processes.ts";
import type { Target } from "./target.ts";

/**
 * Code is compiled after it has run for a while, so warming takes a number of requests. `seconds` is the most for each. Servers run for
 * days, so the number is large: after 5,000 requests genmesh still takes a third more CPU time than after 40,000.
 */
const warmUps = [
  { kind: "json", maxRequests: 40_000, seconds: 25 },
  { kind: "stream", maxRequests: 2_000, seconds: 10 },
] as const;
const warmUpInFlight = 32;

/** Lets the engine compile the code of the lines. */
export async function compileAll(targets: readonly Target[], signal: AbortSignal): Promise<void> {
  for (const { kind, ...bounds } of warmUps) {
    for (const { host, port, requests } of targets) {
      signal.throwIfAborted();
      const load = { port, requests: requests[kind] ?? [], inFlight: warmUpInFlight, ...bounds };
      await runLoad(host === undefined ? load : { ...load, host });
    }
  }
}

/** Milliseconds of a look at processes without work: several of their periods. */
const lookMs = 3_000;

/** The shares of a core that targets use while they have no request. The others then lack these. */
export async function restOf(targets: readonly Target[]): Promise<Map<string, number>> {
  const before = targets.map(({ pids }) => cpuMicrosOf(pids));
  await delay(lookMs);
  return new Map(
    targets.map(({ name, pids }, i) => {
      const micros = cpuMicrosOf(pids) - (before[i] ?? 0);
      return [name, micros / 1_000 / lookMs];
    }),
  );
}
