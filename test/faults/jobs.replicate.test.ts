import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ReplicateDouble } from "../support/upstreams/replicate.ts";
import { createdBySeed, startReplicateDouble } from "./jobs.doubles.ts";
import { createRuns, type Run } from "./jobs.run.ts";
import { stepsOf } from "./steps.ts";

let replicate: ReplicateDouble;
let runs: Run;
beforeAll(async () => {
  replicate = await startReplicateDouble();
  const outside = { replicate: [replicate.baseUrl], maxConcurrent: 1, lostAnswer: "fail" } as const;
  runs = createRuns({ beside: false, outside });
});
afterAll(async () => {
  await runs[Symbol.asyncDispose]();
  await replicate[Symbol.asyncDispose]();
});

/** The numbers of predictions that jobs have. */
const times = () =>
  new Set([...createdBySeed({ replicate: [replicate] }).values()].map(({ length }) => length));

// Only the steps at which its protocol decides. The others are the same as at fal.
describe("a process that dies while Replicate is at its jobs, and is started again", () => {
  test.each(stepsOf(["resumable", "stored", "lost"], ["resumable"]))(
    "%s: nothing is lost, charged twice or paid twice",
    { timeout: 240_000 },
    async (dieAt) => {
      expect(await runs.carryOut({ dieAt })).toEqual({ died: true, breaches: [] });
      expect(times()).toEqual(new Set([1]));
    },
  );

  test("upstream-accepted: the one job that Replicate has begun fails for nothing, and is not sent again", {
    timeout: 240_000,
  }, async () => {
    const { died, breaches } = await runs.carryOut({ dieAt: "upstream-accepted" });
    expect(died).toBe(true);
    expect(breaches.filter((breach) => !breach.startsWith("C7"))).toEqual([]);
    expect(new Set(breaches).size).toBe(1);
    expect(times()).toEqual(new Set([1]));
  });
});
