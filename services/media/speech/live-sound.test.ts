import { expect, test } from "vitest";
import { maxListeners } from "./limits.ts";
import { LiveSound } from "./live-sound.ts";

test("a listener that leaves makes room for another", async () => {
  const sound = new LiveSound({ format: "mp3", amount: 1n });
  sound.push(Buffer.from("first"));
  const { signal } = new AbortController();
  const listeners = Array.from({ length: maxListeners }, () => sound.listen(signal));
  for (const one of listeners)
    expect((await one.next()).value).toEqual(new Uint8Array(Buffer.from("first")));
  expect(await sound.listen(signal).next()).toEqual({ done: true, value: undefined });
  await listeners[0]?.return();
  expect((await sound.listen(signal).next()).done).toBe(false);
});
