import { writeFileSync } from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import { type FaultRun, failuresOf, runFault, tableOf } from "./fault-run.ts";
import { judge, type Verdict } from "./invariants.ts";
import { allScenarios } from "./scenarios.ts";
import type { MeshWorld } from "./world.ts";

/**
 * The scenarios: `all`, or words of their names, separated by commas. Not set: one of each sort. The script can kill the servers (see
 * scenarios.ts). Where a file is named, it gets the table too.
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

/** Checks the answers to callers while processes and stores of a mesh break, and the state when all is well again. */
export function faultsUnderLoad(worldOf: () => MeshWorld): void {
  const runs: FaultRun[] = [];
  const judged: { run: FaultRun; verdict: Verdict }[] = [];
  afterAll(() => {
    const table = tableOf(judged);
    process.stdout.write(`\n${table}\n`);
    if (tableFile) writeFileSync(tableFile, `${table}\n`);
  });

  describe.each(scenarios)("$name", (scenario) => {
    test("is told to callers plainly, and gets well by itself", async () => {
      const run = await runFault(worldOf(), scenario);
      runs.push(run);
      expect(run.recoverySeconds).toBeDefined();
      const unclear = failuresOf(run.load).filter(({ failure }) =>
        /^4|500|without/.test(failure ?? ""),
      );
      expect(unclear).toEqual([]);
    });
  });

  // Leases take time, so the end of all work is awaited once.
  test("nothing was lost, and nothing was done or charged twice", {
    timeout: 400_000,
  }, async () => {
    for (const run of runs) judged.push({ run, verdict: await judge(worldOf(), run.load) });
    const told = judged.map(({ run: { scenario }, verdict: { lost, double } }) => ({
      scenario,
      lost,
      double,
    }));
    expect(told).toEqual(runs.map(({ scenario }) => ({ scenario, lost: [], double: [] })));
  });
}
