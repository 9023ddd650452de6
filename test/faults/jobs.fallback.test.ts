import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { ComfyDouble } from "../support/upstreams/comfyui.ts";
import { type FalDouble, falAnswers } from "../support/upstreams/fal.ts";
import { createdBySeed, startComfyDouble, startFalDouble } from "./jobs.doubles.ts";
import { createRuns, type Death, type Run } from "./jobs.run.ts";
import { stepsOf } from "./steps.ts";

let stack = new AsyncDisposableStack();
const close = async () => {
  const ended = stack;
  stack = new AsyncDisposableStack();
  await ended.disposeAsync();
};

const timeout = 240_000;

/** Two upstreams of one protocol, the first of which begins no job, and a run with them. */
interface Pair {
  fal?: [FalDouble, FalDouble];
  comfyui?: [ComfyDouble, ComfyDouble];
  runs: Run;
}

/** The first one is too busy for every job. Each has one place, so few jobs are on their way to an upstream when the process dies. */
async function falPair(): Promise<Required<Pick<Pair, "fal" | "runs">>> {
  const fal: Pair["fal"] = [stack.use(await startFalDouble()), stack.use(await startFalDouble())];
  fal[0].always("submit", falAnswers.down);
  const origins = fal.map(({ origin }) => origin);
  const outside = { fal: origins, maxConcurrent: 1, lostAnswer: "fail" } as const;
  return { fal, runs: stack.use(createRuns({ beside: false, outside })) };
}

async function comfyPair(): Promise<Pair> {
  const start = async () => stack.use(await startComfyDouble());
  const comfyui: Pair["comfyui"] = [await start(), await start()];
  comfyui[0].always("submit", falAnswers.down);
  const outside = { comfyui: comfyui.map(({ origin }) => origin), maxConcurrent: 1 };
  return { comfyui, runs: stack.use(createRuns({ beside: false, outside })) };
}

/** The breaches after a death, and how often each upstream has had each job so far. */
async function runAt(pair: Pair, death: Death) {
  const fal: readonly FalDouble[] = pair.fal ?? [];
  const comfyui: readonly ComfyDouble[] = pair.comfyui ?? [];
  const { died, breaches } = await pair.runs.carryOut(death);
  const [first, next] = [0, 1].map((at) =>
    createdBySeed({ fal: fal.slice(at, at + 1), comfyui: comfyui.slice(at, at + 1) }),
  );
  const times = (created: typeof first) =>
    [...(created ?? []).values()].map(({ length }) => length);
  const atBoth = [...(first ?? []).keys()].filter((seed) => next?.has(seed));
  return { died, breaches, atFirst: times(first), atNext: new Set(times(next)), atBoth };
}

const once = { atFirst: [], atNext: new Set([1]), atBoth: [] };

/**
 * The only breaches are some failed jobs without a charge, within these numbers. fal's answer to them was lost. The first upstream's place
 * and the next one's may have a job each.
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
  let pair: Awaited<ReturnType<typeof falPair>>;
  beforeAll(async () => {
    pair = await falPair();
  });
  afterAll(close);

  test.each(
    stepsOf(["claimed", "waiting", "resumable", "stored", "won", "settled", "lost"], ["waiting"]),
  )(
    "%s: the next one makes each of them once, but for one that was on its way to the first",
    { timeout },
    async (dieAt) => {
      const { died, breaches, ...created } = await runAt(pair, { dieAt });
      expect(died).toBe(true);
      expectFailed(breaches, { least: 0, most: 1 });
      expect(created).toEqual(once);
    },
  );

  test.each(stepsOf(["sending", "upstream-accepted"], ["sending"]))(
    "%s: a job that an upstream may have begun fails for nothing, and no upstream is asked again",
    { timeout },
    async (dieAt) => {
      const { died, breaches, ...created } = await runAt(pair, { dieAt });
      expect(died).toBe(true);
      expectFailed(breaches, { least: 1, most: 2 });
      expect(created).toEqual(once);
    },
  );
});

describe("a process that dies with a job that the first upstream at fal has, and is started again", () => {
  afterEach(close);

  test("while the first has its request: it fails for nothing, and the next is not asked for it", {
    timeout,
  }, async () => {
    const pair = await falPair();
    const [first] = pair.fal;
    first.next("submit", { kind: "held", until: new Promise(() => {}) });
    const death = { dieAt: undefined, killWhen: first.request("submit", 1) };
    const { died, breaches, ...created } = await runAt(pair, death);
    expect(died).toBe(true);
    expectFailed(breaches, { least: 1, most: 2 });
    // The first upstream made it. So this is the one generation that the operator pays for without a result.
    expect(created).toEqual({ ...once, atFirst: [1] });
  });

  test.each(stepsOf(["lost", "released"], ["released"]))(
    "%s, where the first one's answer is lost: it fails for nothing, and the next is not asked for it",
    { timeout },
    async (dieAt) => {
      const pair = await falPair();
      const [first] = pair.fal;
      first.next("submit", { kind: "lost" });
      const { died, breaches, ...created } = await runAt(pair, { dieAt });
      expect(died).toBe(true);
      expectFailed(breaches, { least: 1, most: 2 });
      expect(created).toEqual({ ...once, atFirst: [1] });
    },
  );
});

describe("a process that dies with jobs whose first ComfyUI is busy, and is started again", () => {
  let pair: Pair;
  beforeAll(async () => {
    pair = await comfyPair();
  });
  afterAll(close);

  test.each(
    stepsOf(
      [
        ...(["claimed", "upstream-accepted", "resumable", "sending", "waiting"] as const),
        ...(["stored", "won", "settled", "lost"] as const),
      ],
      ["waiting"],
    ),
  )("%s: the next one makes each of them once", { timeout }, async (dieAt) => {
    expect(await runAt(pair, { dieAt })).toEqual({ died: true, breaches: [], ...once });
  });
});
