import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { FalDouble } from "../support/upstreams/fal.ts";
import { createdBySeed, isImpossible, startFalDouble } from "./jobs.doubles.ts";
import { createRuns, type Run } from "./jobs.run.ts";
import { stepsOf } from "./steps.ts";

let fal: FalDouble;
let runs: Run;
beforeAll(async () => {
  fal = await startFalDouble();
  // One job at a time. Only the job that a process dies with then has an unknown id at fal.
  const outside = { fal: [fal.origin], maxConcurrent: 1, lostAnswer: "fail" } as const;
  runs = createRuns({ beside: false, outside });
});
afterAll(async () => {
  await runs[Symbol.asyncDispose]();
  await fal[Symbol.asyncDispose]();
});

describe("a process that dies while fal is at its jobs, and is started again", () => {
  test.each(stepsOf(["claimed", "resumable", "stored", "won", "settled", "lost"], ["resumable"]))(
    "%s: nothing is lost, charged twice or paid twice",
    { timeout: 240_000 },
    async (dieAt) => {
      expect(await runs.carryOut({ dieAt })).toEqual({ died: true, breaches: [] });
      for (const created of createdBySeed({ fal: [fal] }).values()) expect(created).toHaveLength(1);
    },
  );

  test.each(stepsOf(["sending", "upstream-accepted"], ["upstream-accepted"]))(
    "%s: the one job that fal may have begun fails for nothing, and is not sent again",
    { timeout: 240_000 },
    async (dieAt) => {
      const { died, breaches } = await runs.carryOut({ dieAt });
      expect(died).toBe(true);
      // Its caller saw a failure in each answer. The money, the files and all other jobs are correct.
      expect(breaches.filter((breach) => !breach.startsWith("C7"))).toEqual([]);
      expect(new Set(breaches).size).toBe(1);
      for (const created of createdBySeed({ fal: [fal] }).values()) expect(created).toHaveLength(1);
      expect(fal.generations.some(isImpossible)).toBe(true);
    },
  );
});

test("a process that dies when fal has begun a job, which the catalog lets it ask for again", {
  timeout: 240_000,
}, async () => {
  await using own = await startFalDouble();
  const outside = { fal: [own.origin], maxConcurrent: 1, lostAnswer: "again" } as const;
  await using again = createRuns({ beside: false, outside });
  expect(await again.carryOut({ dieAt: "upstream-accepted" })).toEqual({
    died: true,
    breaches: [],
  });
  const times = [...createdBySeed({ fal: [own] }).values()].map(({ length }) => length);
  expect(times.sort().slice(-2)).toEqual([1, 2]);
});
