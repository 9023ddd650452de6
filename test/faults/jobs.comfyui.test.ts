import { afterEach, describe, expect, test } from "vitest";
import type { ComfyDouble } from "../support/upstreams/comfyui.ts";
import { createdBySeed, startComfyDouble } from "./jobs.doubles.ts";
import { carryOut, type Plan } from "./jobs.run.ts";

let comfy: ComfyDouble;
afterEach(() => comfy[Symbol.asyncDispose]());

/** Runs a plan at a double of its own. Gives what is amiss, and how often each job was put into its queue. */
async function runAt(plan: Omit<Plan, "beside">) {
  const outside = { comfyui: [comfy.origin], maxConcurrent: 4 };
  const outcome = await carryOut({ ...plan, beside: false, outside });
  return { ...outcome, times: timesQueued() };
}

function timesQueued(): number[] {
  return [...createdBySeed([], [comfy]).values()].map(({ length }) => length);
}

// The id is stored ("resumable") before the graph is sent ("sending"), so a successor finds it in the queue or the history.
describe("a process that dies while ComfyUI is at its jobs, and is started again", () => {
  test.each([
    ...(["claimed", "upstream-accepted", "resumable", "sending"] as const),
    ...(["stored", "won", "settled", "lost"] as const),
  ])("%s: nothing is lost, charged twice or run twice", async (dieAt) => {
    comfy = await startComfyDouble();
    const { died, breaches, times } = await runAt({ dieAt });
    expect({ died, breaches }).toEqual({ died: true, breaches: [] });
    expect(new Set(times)).toEqual(new Set([1]));
  });

  test.each(["2026", "2025", "2024"] as const)(
    "a server of %s has a graph, its answer is not out: it is found in the queue or the history, and run once",
    { timeout: 240_000 },
    async (vintage) => {
      comfy = await startComfyDouble({ vintage });
      comfy.usual.pace = "looks";
      const never = new Promise(() => {});
      comfy.next("submit", { kind: "held", until: never });
      const plan = { dieAt: undefined, killWhen: comfy.request("submit", 1) } as const;
      const { died, breaches, times } = await runAt(plan);
      expect({ died, breaches }).toEqual({ died: true, breaches: [] });
      expect(new Set(times)).toEqual(new Set([1]));
    },
  );
});
