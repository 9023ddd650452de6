import { expect, test } from "vitest";
import { manualClock } from "./clock.ts";
import { createLeaseTime } from "./lease-time.ts";

const leaseMs = 30_000;

test("it is the clock's, as long as that goes as time does", async () => {
  const clock = manualClock();
  const leaseTime = createLeaseTime(clock, leaseMs);
  await clock.advance(100_000);
  expect(leaseTime()).toBe(clock.now());
  clock.set(900);
  expect(leaseTime()).toBe(clock.now());
});

test("a clock that is set ahead is believed when every owner that lives has renewed its lease", async () => {
  const clock = manualClock();
  const leaseTime = createLeaseTime(clock, leaseMs);
  const before = clock.now();
  clock.set(60_000);
  expect(leaseTime()).toBe(before);
  await clock.advance(leaseMs - 1);
  expect(leaseTime()).toBe(before + leaseMs - 1);
  // The clock is set again before the first change was believed: the wait begins again.
  clock.set(60_000);
  expect(leaseTime()).toBe(before + leaseMs - 1);
  await clock.advance(leaseMs);
  expect(leaseTime()).toBe(clock.now());
});

test("one that is set back is followed at once, and that it went ahead before is forgotten", async () => {
  const clock = manualClock();
  const leaseTime = createLeaseTime(clock, leaseMs);
  clock.set(-60_000);
  expect(leaseTime()).toBe(clock.now());
  clock.set(86_400_000);
  leaseTime();
  clock.set(-86_400_000);
  await clock.advance(leaseMs);
  expect(leaseTime()).toBe(clock.now());
});
