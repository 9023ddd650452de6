import { afterEach, describe, expect, test } from "vitest";
import type { ComfyDouble } from "../support/upstreams/comfyui.ts";
import { type FalDouble, falAnswers } from "../support/upstreams/fal.ts";
import { createdBySeed, startComfyDouble, startFalDouble } from "./jobs.doubles.ts";
import { carryOut, type Plan } from "./jobs.run.ts";

let stack = new AsyncDisposableStack();
afterEach(async () => {
  const ended = stack;
  stack = new AsyncDisposableStack();
  await ended.disposeAsync();
});

const timeout = 360_000;

/** A run at two upstreams of one protocol, the first of which begins nothing: what is amiss, and how often each had each job. */
async function runAt(
  { fal = [], comfyui = [] }: { fal?: FalDouble[]; comfyui?: ComfyDouble[] },
  plan: Omit<Plan, "beside" | "outside">,
) {
  const origins = (doubles: { origin: string }[]) => doubles.map(({ origin }) => origin);
  // One at a time at each: few jobs are on their way to an upstream when the process dies.
  const outside = { fal: origins(fal), comfyui: origins(comfyui), maxConcurrent: 1 };
  const { died, breaches } = await carryOut({ ...plan, beside: false, outside });
  const [first, next] = [0, 1].map((at) =>
    createdBySeed(fal.slice(at, at + 1), comfyui.slice(at, at + 1)),
  );
  const times = (created: typeof first) =>
    [...(created ?? []).values()].map(({ length }) => length);
  const atBoth = [...(first ?? []).keys()].filter((seed) => next?.has(seed));
  return { died, breaches, atFirst: times(first), atNext: new Set(times(next)), atBoth };
}

/** A first one that is too busy for every job, and one behind it. */
async function falPair(): Promise<[FalDouble, FalDouble]> {
  const [first, next] = [stack.use(await startFalDouble()), stack.use(await startFalDouble())];
  first.always("submit", falAnswers.down);
  return [first, next];
}

const once = { atFirst: [], atNext: new Set([1]), atBoth: [] };

/**
 * Nothing is amiss but that so many jobs failed at most, and cost their caller nothing: those of which fal's answer is lost. The first
 * one's place and the next one's may have a job each.
 */
function expectFailed(
  breaches: readonly string[],
  { least, most }: { least: number; most: number },
) {
  expect(breaches.filter((breach) => !breach.startsWith("C7"))).toEqual([]);
  const jobs = new Set(breaches).size;
  expect(jobs).toBeGreaterThanOrEqual(least);
  expect(jobs).toBeLessThanOrEqual(most);
}

describe("a process that dies with jobs whose first upstream at fal is busy, and is started again", () => {
  test.each(["claimed", "waiting", "resumable", "stored", "won", "settled", "lost"] as const)(
    "%s: the next one makes each of them once, but for one that was on its way to the first",
    { timeout },
    async (dieAt) => {
      const fal = await falPair();
      const { died, breaches, ...created } = await runAt({ fal }, { dieAt });
      expect(died).toBe(true);
      expectFailed(breaches, { least: 0, most: 1 });
      expect(created).toEqual(once);
    },
  );

  test.each(["sending", "upstream-accepted"] as const)(
    "%s: a job that an upstream may have begun fails for nothing, and no upstream is asked again",
    { timeout },
    async (dieAt) => {
      const fal = await falPair();
      const { died, breaches, ...created } = await runAt({ fal }, { dieAt });
      expect(died).toBe(true);
      expectFailed(breaches, { least: 1, most: 2 });
      expect(created).toEqual(once);
    },
  );

  test("while the first has its request: it fails for nothing, and the next is not asked for it", {
    timeout,
  }, async () => {
    const fal = await falPair();
    const [first] = fal;
    first.next("submit", { kind: "held", until: new Promise(() => {}) });
    const plan = { dieAt: undefined, killWhen: first.request("submit", 1) };
    const { died, breaches, ...created } = await runAt({ fal }, plan);
    expect(died).toBe(true);
    expectFailed(breaches, { least: 1, most: 2 });
    // It was carried out there: this is the one generation that is paid for and comes to nothing.
    expect(created).toEqual({ ...once, atFirst: [1] });
  });

  test.each(["lost", "released"] as const)(
    "%s, where the first one's answer is lost: it fails for nothing, and the next is not asked for it",
    { timeout },
    async (dieAt) => {
      const fal = await falPair();
      const [first] = fal;
      first.next("submit", { kind: "lost" });
      const { died, breaches, ...created } = await runAt({ fal }, { dieAt });
      expect(died).toBe(true);
      expectFailed(breaches, { least: 1, most: 2 });
      expect(created).toEqual({ ...once, atFirst: [1] });
    },
  );
});

describe("a process that dies with jobs whose first ComfyUI is busy, and is started again", () => {
  test.each([
    ...(["claimed", "upstream-accepted", "resumable", "sending", "waiting"] as const),
    ...(["stored", "won", "settled", "lost"] as const),
  ])("%s: the next one makes each of them once", { timeout }, async (dieAt) => {
    const comfyui = [stack.use(await startComfyDouble()), stack.use(await startComfyDouble())];
    comfyui[0]?.always("submit", falAnswers.down);
    expect(await runAt({ comfyui }, { dieAt })).toEqual({ died: true, breaches: [], ...once });
  });
});
