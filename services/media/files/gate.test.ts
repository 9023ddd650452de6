import { expect, test } from "vitest";
import { ErrorReason } from "#kit/errors.ts";
import { createGate, type Gate } from "./gate.ts";

const never = new AbortController().signal;

/** Work that goes on until it is told to end. */
function occupy(gate: Gate, key: string, order: string[], signal = never) {
  const end = Promise.withResolvers<void>();
  const done = gate.run(key, signal, async () => {
    order.push(key);
    await end.promise;
  });
  return { end: () => end.resolve(), done };
}
const settle = () => new Promise((resolve) => setImmediate(resolve));

test("a key's own bound holds up that key alone, and what waits keeps its order", async () => {
  const gate = createGate({ most: 3, mostEach: 2, maxWaiting: 10 });
  const order: string[] = [];
  const all = ["a", "a", "a", "b", "c", "b"].map((key) => occupy(gate, key, order));
  await settle();
  expect(order).toEqual(["a", "a", "b"]);
  all[3]?.end();
  await settle();
  expect(order).toEqual(["a", "a", "b", "c"]);
  all[0]?.end();
  await settle();
  expect(order).toEqual(["a", "a", "b", "c", "a"]);
  for (const { end } of all) end();
  await Promise.all(all.map(({ done }) => done));
  expect(order).toEqual(["a", "a", "b", "c", "a", "b"]);
});

test("work that fails gives its place back", async () => {
  const gate = createGate({ most: 1, mostEach: 1, maxWaiting: 1 });
  const failing = gate.run("a", never, async () => {
    throw new Error("no");
  });
  const next = gate.run("a", never, async () => "done");
  await expect(failing).rejects.toThrow("no");
  expect(await next).toBe("done");
});

test("who waits may leave, and beyond the bound nobody waits", async () => {
  const gate = createGate({ most: 1, mostEach: 1, maxWaiting: 1 });
  const order: string[] = [];
  const first = occupy(gate, "a", order);
  const leaving = new AbortController();
  const second = occupy(gate, "b", order, leaving.signal);
  await expect(gate.run("c", never, async () => {})).rejects.toMatchObject({
    reason: ErrorReason.SERVICE_UNAVAILABLE,
  });
  leaving.abort(new Error("left"));
  await expect(second.done).rejects.toThrow("left");
  const third = occupy(gate, "c", order);
  first.end();
  third.end();
  await Promise.all([first.done, third.done]);
  expect(order).toEqual(["a", "c"]);
});
