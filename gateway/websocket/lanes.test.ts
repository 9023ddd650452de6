import { expect, test } from "vitest";
import { Lanes } from "./lanes.ts";

function lanesOf(...names: string[]): Lanes<string> {
  const lanes = new Lanes<string>();
  for (const [at, name] of names.entries()) lanes.add(name, `${name}${at}`);
  return lanes;
}

test("lanes take turns, each in its own order", () => {
  const lanes = lanesOf("a", "a", "a", "b", "b", "c");
  const order: string[] = [];
  for (let next = lanes.begin(); next; next = lanes.begin()) {
    order.push(next.item);
    lanes.end(next.lane);
  }
  expect(order).toEqual(["a0", "b3", "c5", "a1", "b4", "a2"]);
});

test("a lane has one item under way, and the others go on beside it", () => {
  const lanes = lanesOf("a", "a", "b", "b");
  expect([lanes.begin()?.item, lanes.begin()?.item, lanes.begin()]).toEqual([
    "a0",
    "b2",
    undefined,
  ]);
  lanes.end("b");
  expect([lanes.begin()?.item, lanes.begin()]).toEqual(["b3", undefined]);
  lanes.end("a");
  expect(lanes.begin()?.item).toBe("a1");
});

test("draining takes out what waits, and leaves what is under way", () => {
  const lanes = lanesOf("a", "a", "b");
  lanes.begin();
  expect(lanes.drain()).toEqual(["b2", "a1"]);
  lanes.add("a", "later");
  expect(lanes.begin()).toBeUndefined();
  lanes.end("a");
  expect(lanes.begin()?.item).toBe("later");
});
