import { setImmediate as turn } from "node:timers/promises";
import { MongoNetworkError, MongoServerError } from "mongodb";
import { expect, test, vi } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { manualClock } from "#kit/time/clock.ts";
import { createAttempt } from "./attempts.ts";
import { attemptBudgetMs } from "./limits.ts";

const away = () => new MongoNetworkError("reset");

test("work that succeeds is done once, and is sure", async () => {
  const work = vi.fn(async (unsure: boolean) => unsure);
  expect(await createAttempt(manualClock())(work)).toBe(false);
  expect(work).toHaveBeenCalledOnce();
});

test("it goes again while the server is away, and then knows that it may have been done", async () => {
  const clock = manualClock();
  const seen: boolean[] = [];
  const done = createAttempt(clock)(async (unsure) => {
    seen.push(unsure);
    if (seen.length < 4) throw away();
    return "done";
  });
  await turn();
  await clock.advance(2_000);
  expect(await done).toBe("done");
  expect(seen).toEqual([false, true, true, true]);
});

test("after some seconds it is refused, with the cause", async () => {
  const clock = manualClock();
  const error = away();
  const work = vi.fn(async () => {
    throw error;
  });
  const done = createAttempt(clock)(work);
  const refused = expect(done).rejects.toMatchObject({
    reason: ErrorReason.SERVICE_UNAVAILABLE,
    cause: error,
  });
  await turn();
  await clock.advance(attemptBudgetMs);
  await refused;
  // Often enough to notice an election's end, and seldom enough not to disturb it.
  expect(work.mock.calls.length).toBeGreaterThan(5);
  expect(work.mock.calls.length).toBeLessThan(30);
});

test("where another write goes first again and again it goes on for as long as an operation may take", async () => {
  const clock = manualClock();
  let tries = 0;
  const done = createAttempt(clock)(async () => {
    if (++tries < 4) {
      await clock.sleep(2_000);
      throw new MongoServerError({ message: "deadlock detected", code: 16_908_292 });
    }
    return "done";
  });
  for (let second = 0; second < 9; second++) {
    await turn();
    await clock.advance(1_000);
  }
  expect(await done).toBe("done");
});

test("a server that was silent for longer is not waited for twice", async () => {
  const clock = manualClock();
  const work = vi.fn(async () => {
    await clock.sleep(attemptBudgetMs);
    throw away();
  });
  const refused = expect(createAttempt(clock)(work)).rejects.toMatchObject({
    reason: ErrorReason.SERVICE_UNAVAILABLE,
  });
  await turn();
  await clock.advance(attemptBudgetMs);
  await refused;
  expect(work).toHaveBeenCalledOnce();
});

test("what would end alike is not tried again", async () => {
  const error = new MongoServerError({ message: "m", code: 13 });
  const work = vi.fn(async () => {
    throw error;
  });
  await expect(createAttempt(manualClock())(work)).rejects.toBe(error);
  expect(work).toHaveBeenCalledOnce();
});
