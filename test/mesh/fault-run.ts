import { setTimeout as delay } from "node:timers/promises";
import type { Verdict } from "./invariants.ts";
import { type Action, type Load, type Outcome, startLoad } from "./load.ts";
import type { Scenario } from "./scenarios.ts";
import type { MeshWorld } from "./world.ts";

/** The effects of a scenario on callers. */
export interface FaultRun {
  scenario: string;
  load: Load;
  /** Seconds from the repair to the last failure. Undefined where requests still fail. */
  recoverySeconds: number | undefined;
}

/** Milliseconds of load before a fault. */
const beforeMs = 1_500;
/** Milliseconds without a failure, with each kind of action successful, after which all is well again. And the longest wait for that. */
const [wellForMs, wellWithinMs] = [3_000, 40_000];
const actions: readonly Action[] = ["text", "stream", "submit", "poll", "download"];

/** Runs a scenario under load. The load goes on until all requests succeed again. */
export async function runFault(world: MeshWorld, scenario: Scenario): Promise<FaultRun> {
  const load = await startLoad(world);
  await delay(beforeMs);
  await scenario.happen(world);
  const mendedAtMs = load.nowMs();
  let recoverySeconds: number | undefined;
  while (recoverySeconds === undefined && load.nowMs() - mendedAtMs < wellWithinMs) {
    await delay(200);
    const lastFailureMs = Math.max(mendedAtMs, ...failuresOf(load).map(({ atMs }) => atMs));
    const since = load.outcomes.filter(({ atMs }) => atMs > lastFailureMs);
    const isWell = actions.every((action) => since.some((one) => one.action === action));
    if (isWell && load.nowMs() - lastFailureMs > wellForMs) {
      recoverySeconds = (lastFailureMs - mendedAtMs) / 1_000;
    }
  }
  await load.stop();
  return { scenario: scenario.name, load, recoverySeconds };
}

/** The failures that callers had. */
export function failuresOf({ outcomes }: Load): Outcome[] {
  return outcomes.filter(({ failure }) => failure !== undefined);
}

/** The runs, a line each. */
export function tableOf(runs: readonly { run: FaultRun; verdict: Verdict }[]): string {
  const head = ["scenario", "requests", "failures by kind", "lost", "double", "recovery s"];
  const rows = runs.map(({ run, verdict }) => [
    run.scenario,
    `${run.load.outcomes.length}`,
    kindsOf(run.load),
    `${verdict.lost.length}`,
    `${verdict.double.length}`,
    run.recoverySeconds?.toFixed(1) ?? "never",
  ]);
  const all = [head, head.map(() => "---"), ...rows];
  return all.map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function kindsOf(load: Load): string {
  const byKind = Map.groupBy(failuresOf(load), ({ action, failure }) => `${action} ${failure}`);
  const words = [...byKind].map(([kind, list]) => `${list.length} ${kind}`);
  return words.sort().join(", ") || "none";
}
