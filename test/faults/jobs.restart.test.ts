import { afterAll, describe, expect, test } from "vitest";
import { failPoints } from "../../services/media/fail-points.ts";
import { carryOut, createRuns } from "./jobs.run.ts";

// Milliseconds for starting processes, and for leases that must end, on a slow machine.
const timeout = 240_000;

describe("a process that dies at a step, and is started again", () => {
  const runs = createRuns({ beside: false });
  afterAll(() => runs[Symbol.asyncDispose]());
  test.each(failPoints)("%s", { timeout }, async (dieAt) => {
    expect(await runs.carryOut({ dieAt })).toEqual({ died: true, breaches: [] });
  });
});

test("a round that does not come to rest says what each process knows of it", {
  timeout,
}, async () => {
  const plan = { dieAt: undefined, killWhen: Promise.resolve(), beside: true } as const;
  const work = carryOut({ ...plan, bug: "never-completed", restWithinMs: 15_000 });
  await expect(work).rejects.toThrow(
    new RegExp(
      [
        /is settling.* ms of their time passed, the last look was at \d+/,
        /1 processes live; their ends: SIGKILL/,
        /process \d+ at \d+: its step (is taken|waits)/,
        /any due by index: (true|false)/,
        /job_\w+: {"state":"settling","dueInMs":-?\d+,.*"events":\[/,
        /a due job could not be driven on/,
      ]
        .map(({ source }) => source)
        .join("[^]*"),
    ),
  );
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
