import { afterAll, describe, expect, test } from "vitest";
import { failPoints } from "../../services/media/fail-points.ts";
import { describeWithServers } from "../support/on-servers.ts";
import { carryOut, createRuns } from "./jobs.run.ts";
import { isEveryStep, stepsOf } from "./steps.ts";

// Milliseconds for starting processes, for making collections, and for leases that must end, on a slow machine.
const timeout = 240_000;

await describeWithServers("on MongoDB, JetStream and S3, a process that dies at a step", () => {
  describe("and is started again", () => {
    const runs = createRuns({ beside: false, onServers: true });
    afterAll(() => runs[Symbol.asyncDispose]());
    test.each(stepsOf(failPoints, ["reserved", "won", "forgotten"]))(
      "%s",
      { timeout },
      async (dieAt) => {
        const outcome = await runs.carryOut({ dieAt });
        expect(outcome).toEqual({ died: true, breaches: [] });
      },
    );
  });

  // The embedded stores always show that breaches are found.
  test.runIf(isEveryStep)(
    "a settlement that charges twice when it is repeated is found",
    { timeout },
    async () => {
      const { died, breaches } = await carryOut({
        dieAt: "settled",
        beside: false,
        onServers: true,
        bug: "double-charge",
      });
      expect(died).toBe(true);
      expect(breaches.some((breach) => breach.startsWith("C5"))).toBe(true);
    },
  );

  describe("beside another that takes the same submissions", () => {
    const runs = createRuns({ beside: true, onServers: true });
    afterAll(() => runs[Symbol.asyncDispose]());
    test.each(
      stepsOf(["reserved", "claimed", "won", "settled", "forgotten"], ["claimed", "settled"]),
    )("%s", { timeout }, async (dieAt) => {
      const { breaches } = await runs.carryOut({ dieAt });
      expect(breaches).toEqual([]);
    });
  });
});
