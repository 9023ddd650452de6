import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { ComfyDouble } from "../support/upstreams/comfyui.ts";
import { createdBySeed, startComfyDouble } from "./jobs.doubles.ts";
import { carryOut, createRuns, type Run } from "./jobs.run.ts";
import { isEveryStep, stepsOf } from "./steps.ts";

const outsideOf = ({ origin }: ComfyDouble) => ({ comfyui: [origin], maxConcurrent: 4 });

/** The counts of how often jobs were put into its queue. */
function timesQueued(comfy: ComfyDouble): Set<number> {
  const created = createdBySeed({ comfyui: [comfy] });
  return new Set([...created.values()].map(({ length }) => length));
}

// The id is stored ("resumable") before the graph is sent ("sending"). So a successor finds it in the queue or the history.
describe("a process that dies while ComfyUI is at its jobs, and is started again", () => {
  let comfy: ComfyDouble;
  let runs: Run;
  beforeAll(async () => {
    comfy = await startComfyDouble();
    runs = createRuns({ beside: false, outside: outsideOf(comfy) });
  });
  afterAll(async () => {
    await runs[Symbol.asyncDispose]();
    await comfy[Symbol.asyncDispose]();
  });
  test.each(
    stepsOf(
      [
        ...(["claimed", "upstream-accepted", "resumable", "sending"] as const),
        ...(["stored", "won", "settled", "lost"] as const),
      ],
      ["resumable", "sending"],
    ),
  )("%s: nothing is lost, charged twice or run twice", async (dieAt) => {
    expect(await runs.carryOut({ dieAt })).toEqual({ died: true, breaches: [] });
    expect(timesQueued(comfy)).toEqual(new Set([1]));
  });
});

describe("a process that dies when its answer is not out, and is started again", () => {
  let comfy: ComfyDouble;
  afterEach(() => comfy[Symbol.asyncDispose]());
  test.each(isEveryStep ? (["2026", "2025", "2024"] as const) : (["2026"] as const))(
    "a server of %s has the graph: it is found in the queue or the history, and run once",
    { timeout: 240_000 },
    async (vintage) => {
      comfy = await startComfyDouble({ vintage });
      comfy.usual.pace = "looks";
      const never = new Promise(() => {});
      comfy.next("submit", { kind: "held", until: never });
      const death = { dieAt: undefined, killWhen: comfy.request("submit", 1) };
      const outside = outsideOf(comfy);
      const outcome = await carryOut({ ...death, beside: false, outside });
      expect(outcome).toEqual({ died: true, breaches: [] });
      expect(timesQueued(comfy)).toEqual(new Set([1]));
    },
  );
});
