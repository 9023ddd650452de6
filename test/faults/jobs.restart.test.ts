import { afterAll, describe, expect, test } from "vitest";
import { failPoints } from "../../services/media/fail-points.ts";
import { carryOut, createRuns } from "./jobs.run.ts";

// Starting processes, and leases that must end, on a slow machine.
const timeout = 240_000;

describe("a process that dies at a step, and is started again", () => {
  const runs = createRuns({ beside: false });
  afterAll(() => runs[Symbol.asyncDispose]());
  test.each(failPoints)("%s", { timeout }, async (dieAt) => {
    expect(await runs.carryOut({ dieAt })).toEqual({ died: true, breaches: [] });
  });
});

test("a settlement that charges twice when it is repeated is found", { timeout }, async () => {
  const { died, breaches } = await carryOut({
    dieAt: "settled",
    beside: false,
    bug: "double-charge",
  });
  expect(died).toBe(true);
  expect(breaches.some((breach) => breach.startsWith("C5"))).toBe(true);
});
