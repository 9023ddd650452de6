import { afterAll, describe, expect, test } from "vitest";
import { failPoints } from "../../services/media/fail-points.ts";
import { createRuns } from "./jobs.run.ts";
import { stepsOf } from "./steps.ts";

// Milliseconds for starting processes, and for leases that must end, on a slow machine.
const timeout = 240_000;

describe("a process that dies at a step, beside another that takes the same submissions", () => {
  const runs = createRuns({ beside: true });
  afterAll(() => runs[Symbol.asyncDispose]());
  const steps = stepsOf(failPoints, ["reserved", "claimed", "won"]);
  let deaths = 0;
  test.each(steps)("%s", { timeout }, async (dieAt) => {
    const { died, breaches } = await runs.carryOut({ dieAt });
    if (died) deaths++;
    expect(breaches).toEqual([]);
  });

  test("most of them died at their step: the other had not done it all before", () => {
    expect(deaths).toBeGreaterThan(steps.length / 2);
  });
});
