import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { correctedClock, manualClock } from "./clock.ts";

const base = manualClock();
const machineNow = base.now;

test("it shows the machine's time until a server's is known, and that from then on", async () => {
  const clock = correctedClock(base, machineNow);
  expect(clock.now()).toBe(base.now());
  expect(await clock.correct(async () => base.now() + 120_000)).toBe("corrected");
  expect(clock.now() - base.now()).toBeCloseTo(120_000, -2);
  expect(Number.isInteger(clock.now())).toBe(true);
  await base.advance(5_000);
  expect(clock.now() - base.now()).toBeCloseTo(120_000, -2);
  expect(await clock.correct(async () => base.now() - 120_000)).toBe("corrected");
  expect(clock.behindMs).toBeCloseTo(-120_000, -2);
});

test("what clocks differ by anyway changes nothing", async () => {
  const clock = correctedClock(base, machineNow);
  expect(await clock.correct(async () => base.now() + 900)).toBe("kept");
  expect(await clock.correct(async () => base.now() - 900)).toBe("kept");
  expect(clock.now()).toBe(base.now());
  await clock.correct(async () => base.now() + 10_000);
  const set = clock.behindMs;
  expect(await clock.correct(async () => base.now() + 9_500)).toBe("kept");
  expect(clock.behindMs).toBe(set);
});

test("an answer that took long, or is none, changes nothing", async () => {
  const clock = correctedClock(base, machineNow);
  const late = async () => {
    await delay(550);
    return base.now() + 60_000;
  };
  expect(await clock.correct(late)).toBe("unsure");
  expect(await clock.correct(async () => Number.NaN)).toBe("unsure");
  await expect(clock.correct(() => Promise.reject(new Error("away")))).rejects.toThrow("away");
  expect(clock.now()).toBe(base.now());
});
