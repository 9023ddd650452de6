import { expect, test } from "vitest";
import { Stop } from "./stop.ts";

test("its listeners are called once, in order, and the first reason stays", () => {
  const stop = new Stop();
  const calls: string[] = [];
  const leave = () => calls.push("left");
  stop.addEventListener("abort", () => calls.push("first"));
  stop.addEventListener("abort", leave);
  stop.addEventListener("abort", () => calls.push("second"));
  stop.removeEventListener("abort", leave);
  stop.throwIfAborted();
  stop.abort("why");
  stop.abort("again");
  expect(calls).toEqual(["first", "second"]);
  expect(stop).toMatchObject({ aborted: true, reason: "why" });
  expect(() => stop.throwIfAborted()).toThrow("why");
});

test("a listener that comes after the end is not called, and one may leave in another's call", () => {
  const stop = new Stop();
  const calls: string[] = [];
  stop.addEventListener("abort", () => {
    stop.addEventListener("abort", () => calls.push("late"));
    calls.push("in time");
  });
  stop.abort("why");
  stop.addEventListener("abort", () => calls.push("late"));
  expect(calls).toEqual(["in time"]);
});

test.each([
  ["before", (stop: Stop) => stop.signal],
  ["after", () => undefined],
])("its signal aborts with it, made %s the end", (_, make) => {
  const stop = new Stop();
  make(stop);
  stop.abort(new Error("why"));
  expect(stop.signal.aborted).toBe(true);
  expect(stop.signal.reason).toBe(stop.reason);
  expect(stop.signal).toBe(stop.signal);
});
