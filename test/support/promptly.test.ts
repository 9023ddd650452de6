import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { othersShare, ownTicks } from "./machine.ts";
import { isPrompt, promptly, promptlyInTurns } from "./promptly.ts";
import { until } from "./until.ts";

const quiet = { idleMs: 0, ms: 251, othersShare: 0 };
const asFast = () => 1;

test("a quiet machine allows the promise and what the idle thing took, and no more", () => {
  expect(isPrompt(250, quiet, asFast)).toBe(false);
  expect(isPrompt(250, { ...quiet, ms: 250 }, asFast)).toBe(true);
  expect(isPrompt(250, { ...quiet, idleMs: 1 }, asFast)).toBe(true);
});

test("a busy one allows what it gave to others besides, a slow one what it takes longer", () => {
  const half = { ...quiet, othersShare: 0.5 };
  expect(isPrompt(250, { ...half, ms: 500 }, asFast)).toBe(true);
  expect(isPrompt(250, { ...half, ms: 501 }, asFast)).toBe(false);
  expect(isPrompt(250, { ...quiet, ms: 750 }, () => 3)).toBe(true);
  expect(isPrompt(250, { ...quiet, ms: 751 }, () => 3)).toBe(false);
});

test("others have what was neither idle nor our own", () => {
  const reading = { all: 1_000, others: 100 };
  expect(othersShare(reading, { all: 1_200, others: 150 })).toBe(0.25);
  // Servers with a request now and then are no load.
  expect(othersShare(reading, { all: 1_200, others: 119 })).toBe(0);
  expect(othersShare(reading, { all: 1_200, others: 90 })).toBe(0);
  expect(othersShare(reading, { all: 1_200, others: 300 })).toBe(0.95);
  expect(othersShare(reading, reading)).toBe(0);
  expect(othersShare(undefined, reading)).toBe(0);
});

test("what a test's own processes compute is its own, also once they have ended", async () => {
  const before = ownTicks();
  const busy = spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" });
  await until("half a second of its time", () => ownTicks() >= before + 50);
  const running = ownTicks();
  busy.kill("SIGKILL");
  await once(busy, "exit");
  expect(ownTicks()).toBeGreaterThanOrEqual(running);
});

test("gives what the work gave, and its failure", async () => {
  expect(await promptly(10_000, async () => "done")).toBe("done");
  await expect(promptly(10_000, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
});

test("says all figures of what came too late", async () => {
  // An hour late on any machine, because the work reports the time of its end.
  const hour = 3_600_000;
  const late = promptly(
    1_000,
    () => performance.now() + hour,
    (overAt) => overAt,
  );
  await expect(late).rejects.toThrow(/^1000 ms were promised, and it took 36\d+ ms, \d+ % of/);
});

test("in turns: on a quiet machine one, on a busy one five at most", async () => {
  let turns = 0;
  const never = promptlyInTurns(-1_000, async ({ idle, real }) => {
    turns++;
    await idle(async () => {});
    await real(async () => {});
  });
  await expect(never).rejects.toThrow(/-1000 ms were promised, and it took 0 ms, idle \d+ ms, /);
  expect(turns).toBeLessThanOrEqual(5);
  await promptlyInTurns(10_000, async ({ real }) => real(async () => {}));
});
