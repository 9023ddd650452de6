import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FaultRun, failuresOf, runFault, tableOf } from "./fault-run.ts";
import { judge, type Verdict } from "./invariants.ts";
import { allScenarios } from "./scenarios.ts";
import { describeMesh } from "./servers.ts";
import { type MeshWorld, startMeshWorld } from "./world.ts";

/**
 * Which scenarios: `all`, or words that their names hold, separated by commas; not set: one of each sort.
 * The script is what can kill the servers; see scenarios.ts. The table goes into a file, too, where one is named.
 */
const {
  GENMESH_TEST_FAULTS: wanted,
  GENMESH_TEST_BACKENDS_SCRIPT: script,
  GENMESH_TEST_FAULTS_TABLE: tableFile,
} = process.env;
const scenarios = allScenarios(script).filter(({ name, isSample }) => {
  if (wanted === undefined) return isSample;
  return wanted === "all" || wanted.split(",").some((word) => name.includes(word));
});
/** Of some processes, beside all that happens. */
const clocksAheadMs = { "media-2": 120_000, "billing-1": -120_000 };

await describeMesh("a mesh under load", () => {
  let world: MeshWorld;
  const runs: FaultRun[] = [];
  const judged: { run: FaultRun; verdict: Verdict }[] = [];
  beforeAll(async () => {
    const started = await startMeshWorld({ replicas: "2", clocksAheadMs });
    if (!started) throw new Error("there is no server for one of the stores");
    world = started;
  });
  afterAll(async () => {
    const table = tableOf(judged);
    process.stdout.write(`\n${table}\n`);
    if (tableFile) writeFileSync(tableFile, `${table}\n`);
    await world?.[Symbol.asyncDispose]();
  });

  describe.each(scenarios)("$name", (scenario) => {
    test("is told to callers plainly, and gets well by itself", async () => {
      const run = await runFault(world, scenario);
      runs.push(run);
      expect(run.recoverySeconds).toBeDefined();
      const unclear = failuresOf(run.load).filter(({ failure }) =>
        /^4|500|without/.test(failure ?? ""),
      );
      expect(unclear).toEqual([]);
    });
  });

  // Leases take their time, so the end of all is waited for once.
  test("nothing was lost, and nothing was done or charged twice", {
    timeout: 400_000,
  }, async () => {
    for (const run of runs) judged.push({ run, verdict: await judge(world, run.load) });
    const told = judged.map(({ run: { scenario }, verdict: { lost, double } }) => ({
      scenario,
      lost,
      double,
    }));
    expect(told).toEqual(runs.map(({ scenario }) => ({ scenario, lost: [], double: [] })));
  });
});
