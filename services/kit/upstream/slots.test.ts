import { expect, test } from "vitest";
import { createSlots } from "./slots.ts";

const never = new AbortController().signal;

test("places are given in the order of asking, and once", async () => {
  const slots = createSlots();
  const ask = () => slots.acquire({ name: "a", max: 1, waitMs: 5000, signal: never });
  const first = await ask();
  const order: string[] = [];
  const second = ask().then((release) => {
    order.push("second");
    return release;
  });
  const third = ask().then((release) => {
    order.push("third");
    return release;
  });
  first();
  first();
  const release = await second;
  expect(order).toEqual(["second"]);
  release();
  (await third)();
  expect(order).toEqual(["second", "third"]);
  (await ask())();
});

test("0 is no bound; names do not share", async () => {
  const slots = createSlots();
  const free = () => slots.acquire({ name: "a", max: 0, waitMs: 1, signal: never });
  await Promise.all(Array.from({ length: 50 }, free));
  await slots.acquire({ name: "b", max: 1, waitMs: 1, signal: never });
  await slots.acquire({ name: "c", max: 1, waitMs: 1, signal: never });
});

test("waiting too long, and leaving, give the turn to the next", async () => {
  const slots = createSlots();
  const ask = (waitMs: number, signal = never) =>
    slots.acquire({ name: "a", max: 1, waitMs, signal });
  const release = await ask(1);
  await expect(ask(5)).rejects.toMatchObject({ kind: "unreachable", timedOut: true });
  const caller = new AbortController();
  const left = ask(5000, caller.signal);
  const patient = ask(5000);
  caller.abort(new Error("left"));
  await expect(left).rejects.toThrow("left");
  release();
  (await patient)();
});
