import { expect, test } from "vitest";
import { ErrorReason } from "#kit/errors.ts";
import { createWatcher } from "./watcher.ts";

async function first<T>(messages: AsyncIterable<T>): Promise<T | undefined> {
  for await (const one of messages) return one;
  return undefined;
}

test("what a slow reader missed is one message, each key once, at the latest revision", async () => {
  const watcher = createWatcher(3, 0);
  watcher.push({ revision: 5n, keyIds: ["a", "b"] }, 10);
  watcher.push({ revision: 4n, keyIds: ["b", "c"] }, 20);
  expect(watcher.toldAtMs()).toBe(20);
  expect(await first(watcher.messages())).toEqual({ revision: 5n, keyIds: ["a", "b", "c"] });
});

test("a reader too slow for the bound begins anew", async () => {
  const watcher = createWatcher(3, 0);
  watcher.push({ revision: 5n, keyIds: ["a", "b"] }, 10);
  watcher.push({ revision: 6n, keyIds: ["c", "d"] }, 20);
  await expect(first(watcher.messages())).rejects.toMatchObject({
    reason: ErrorReason.WATCH_RESET,
  });
});

test("the first end stands", async () => {
  const watcher = createWatcher(3, 0);
  watcher.end();
  watcher.reset();
  expect(await first(watcher.messages())).toBeUndefined();
});
