import { expect, test } from "vitest";
import { manualClock } from "#kit/time/clock.ts";
import { heldBackLookMs, heldBackMs } from "./limits.ts";
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

test.each([
  [2, 1],
  [4, 3],
  [8, 6],
])("of %i places one account has %i, also while no other needs any", async (max, most) => {
  const slots = createSlots(manualClock());
  const given: string[] = [];
  const ask = async (accountId: string) => {
    const place = await slots.acquire({ name: "a", max, accountId, ...quick });
    given.push(accountId);
    return place;
  };
  (await ask("y"))[Symbol.dispose]();
  for (let at = 0; at < max; at++) void ask("x");
  (await ask("y"))[Symbol.dispose]();
  expect(given).toEqual(["y", ...Array(most).fill("x"), "y"]);
});

test("an account that is alone has all places, until another one asks", async () => {
  const clock = manualClock();
  const slots = createSlots(clock);
  const given: string[] = [];
  const ask = async (accountId: string) => {
    const place = await slots.acquire({ name: "a", max: 2, accountId, ...quick });
    given.push(accountId);
    return place;
  };
  const [first, second] = [await ask("x"), await ask("x")];
  const third = ask("x");
  const other = ask("y");
  first[Symbol.dispose]();
  const theirs = await other;
  // The account has one of the two places again when its own are over, and the other stays free.
  second[Symbol.dispose]();
  (await third)[Symbol.dispose]();
  theirs[Symbol.dispose]();
  const held = await ask("x");
  const late = ask("x");
  expect(given).toEqual(["x", "x", "y", "x", "x"]);
  held[Symbol.dispose]();
  (await late)[Symbol.dispose]();
  // For a quarter of an hour there was no other account, so this one is alone.
  await clock.advance(15 * 60_000);
  await ask("x");
  await ask("x");
  expect(given.slice(6)).toEqual(["x", "x"]);
});

test("a place that is held back is ended where another account waits, the longest first", async () => {
  const clock = manualClock();
  const slots = createSlots(clock);
  const ask = (accountId: string) =>
    slots.acquire({ name: "a", max: 2, accountId, waitMs: 60_000, signal: never });
  const ended: string[] = [];
  const [x, y] = [await ask("x"), await ask("y")];
  const hold = (place: typeof x, name: string) =>
    place.heldBack(() => {
      ended.push(name);
      place[Symbol.dispose]();
    });
  hold(x, "x");
  await clock.advance(1_000);
  hold(y, "y");
  await clock.advance(heldBackMs);
  // No other account waits. A request of the same account has its share.
  void ask("x");
  await clock.advance(heldBackMs);
  expect(ended).toEqual([]);
  // The caller takes something again.
  x.used();
  hold(x, "x");
  const z = ask("z");
  await clock.advance(heldBackLookMs);
  (await z)[Symbol.dispose]();
  expect(ended).toEqual(["y"]);
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
  await expect(ask(50)).rejects.toMatchObject({ kind: "full", timedOut: false });
  const caller = new AbortController();
  const left = ask(5000, caller.signal);
  const patient = ask(5000);
  caller.abort(new Error("left"));
  await expect(left).rejects.toThrow("left");
  turn[Symbol.dispose]();
  (await patient)[Symbol.dispose]();
});
