import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { BackPressure } from "./reply-body.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

const pass = (ms: number) => vi.advanceTimersByTime(ms);

function pause(pressure: BackPressure, ms: number): void {
  pressure.began();
  pass(ms);
  pressure.ended();
}

/** Waits for bytes that the sender has not sent yet. The event loop turns meanwhile. */
async function wait(pressure: BackPressure, ms: number): Promise<void> {
  pressure.waits();
  for (let turn = 0; turn < 10; turn++) await setImmediate();
  pass(ms);
  pressure.came();
}

test("a reader that leaves the socket unread for a second holds its sender back, even while it does", () => {
  const pressure = new BackPressure();
  pressure.began();
  pass(999);
  expect(pressure.isHeldBack()).toBe(false);
  pass(1);
  expect(pressure.isHeldBack()).toBe(true);
});

test("until it has waited some seconds for more, also where it reads meanwhile", async () => {
  const pressure = new BackPressure();
  pause(pressure, 60_000);
  for (let i = 0; i < 39; i++) await wait(pressure, 100);
  expect(pressure.isHeldBack()).toBe(true);
  await wait(pressure, 200);
  expect(pressure.isHeldBack()).toBe(false);
});

test("what a slow process takes to read what lay in the kernel is no wait", async () => {
  const pressure = new BackPressure();
  pause(pressure, 60_000);
  for (let chunk = 0; chunk < 20; chunk++) {
    pressure.waits();
    pass(1_000);
    await setImmediate();
    pressure.came();
  }
  expect(pressure.isHeldBack()).toBe(true);
});

test("short pauses add up where the reader never waits, and are forgotten where it does", async () => {
  const pressure = new BackPressure();
  for (let i = 0; i < 20; i++) {
    pause(pressure, 90);
    await wait(pressure, 90);
  }
  expect(pressure.isHeldBack()).toBe(false);
  for (let i = 0; i < 12; i++) pause(pressure, 90);
  expect(pressure.isHeldBack()).toBe(true);
});

test("time counts as the reader's while something lies there unread, and no longer", async () => {
  const pressure = new BackPressure();
  await wait(pressure, 500);
  pressure.lies();
  pass(200);
  pressure.lies();
  pass(100);
  expect(pressure.lainMs()).toBe(300);
  pressure.ended();
  pass(1_000);
  expect(pressure.lainMs()).toBe(300);
});
