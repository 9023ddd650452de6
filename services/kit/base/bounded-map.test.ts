import { expect, test } from "vitest";
import { createBoundedMap } from "./bounded-map.ts";

test("the entry not used for longest leaves, and is told of", () => {
  const left: [string, number][] = [];
  const map = createBoundedMap<number>(2, (name, value) => left.push([name, value]));
  map.set("a", 1);
  map.set("b", 2);
  expect(map.get("a")).toBe(1);
  map.set("c", 3);
  expect(left).toEqual([["b", 2]]);
  expect(map.get("b")).toBeUndefined();
  expect(map.get("a")).toBe(1);
  expect(map.oldest()).toEqual(["c", 3]);
});

test("to set anew is a use, not a second entry; to delete is not to leave", () => {
  const left: string[] = [];
  const map = createBoundedMap<number>(2, (name) => left.push(name));
  map.set("a", 1);
  map.set("b", 2);
  map.set("a", 9);
  map.delete("b");
  expect([map.size, map.get("a"), left]).toEqual([1, 9, []]);
  map.clear();
  expect([map.size, map.oldest()]).toEqual([0, undefined]);
});

test("it never grows above its bound", () => {
  const map = createBoundedMap<number>(10);
  for (let i = 0; i < 1_000; i += 1) map.set(`n${i}`, i);
  expect(map.size).toBe(10);
  expect(map.get("n999")).toBe(999);
  expect(map.get("n989")).toBeUndefined();
});
