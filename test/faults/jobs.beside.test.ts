import { describe, expect, test } from "vitest";
import { failPoints } from "../../services/media/fail-points.ts";
import { carryOut } from "./jobs.run.ts";

// Starting processes, and leases that must end, on a slow machine.
const timeout = 240_000;

describe("a process that dies at a step, beside another that takes the same submissions", () => {
  let deaths = 0;
  test.each(failPoints)("%s", { timeout }, async (dieAt) => {
    const { died, breaches } = await carryOut({ dieAt, beside: true });
    if (died) deaths++;
    expect(breaches).toEqual([]);
  });

  test("most of them died at their step: the other had not done it all before", () => {
    expect(deaths).toBeGreaterThan(failPoints.length / 2);
  });
});
