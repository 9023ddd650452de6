import { expect, test } from "vitest";
import { manualClock } from "../clock.ts";
import { createSlots } from "./slots.ts";

const never = new AbortController().signal;
const quick = { waitMs: 5000, signal: never };

test("places are given in the order of asking, and once", async () => {
  const slots = createSlots();
  const ask = () => slots.acquire({ name: "a", max: 1, accountId: "x", ...quick });
  const first = await ask();
  const order: string[] = [];
  const second = ask().then((turn) => {
    order.push("second");
    return turn;
  });
  const third = ask().then((turn) => {
    order.push("third");
    return turn;
  });
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  const turn = await second;
  expect(order).toEqual(["second"]);
  turn[Symbol.dispose]();
  (await third)[Symbol.dispose]();
  expect(order).toEqual(["second", "third"]);
  (await ask())[Symbol.dispose]();
});

test("0 is no bound; names do not share", async () => {
  const slots = createSlots();
  const free = () => slots.acquire({ name: "a", max: 0, accountId: "x", waitMs: 1, signal: never });
  await Promise.all(Array.from({ length: 50 }, free));
  await slots.acquire({ name: "b", max: 1, accountId: "x", waitMs: 1, signal: never });
  await slots.acquire({ name: "c", max: 1, accountId: "x", waitMs: 1, signal: never });
});

test("an account that keeps its places leaves one to the others, once there are others", async () => {
  const clock = manualClock();
  const slots = createSlots(clock);
  const given: string[] = [];
  const ask = async (accountId: string) => {
    const turn = await slots.acquire({ name: "a", max: 2, accountId, ...quick });
    given.push(accountId);
    return turn;
  };
  const alone = [await ask("x"), await ask("x")];
  for (const turn of alone) turn[Symbol.dispose]();
  (await ask("y"))[Symbol.dispose]();
  void ask("x");
  void ask("x");
  (await ask("y"))[Symbol.dispose]();
  expect(given).toEqual(["x", "x", "y", "x", "y"]);
});

test("more places of a new catalog are given at once", async () => {
  const slots = createSlots(manualClock());
  const ask = (accountId: string, max: number) =>
    slots.acquire({ name: "a", max, accountId, ...quick });
  void ask("x", 1);
  const waiting = ask("x", 1);
  void ask("y", 3);
  (await waiting)[Symbol.dispose]();
});

test("waiting too long, and leaving, give the turn to the next", async () => {
  const slots = createSlots();
  const ask = (waitMs: number, signal = never) =>
    slots.acquire({ name: "a", max: 1, accountId: "x", waitMs, signal });
  const turn = await ask(50);
  await expect(ask(50)).rejects.toMatchObject({ kind: "unreachable", timedOut: true });
  const caller = new AbortController();
  const left = ask(5000, caller.signal);
  const patient = ask(5000);
  caller.abort(new Error("left"));
  await expect(left).rejects.toThrow("left");
  turn[Symbol.dispose]();
  (await patient)[Symbol.dispose]();
});
