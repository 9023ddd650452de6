import { expect, test } from "vitest";
import { madeOnce } from "./memo.ts";

test("what is made once is kept, and what failed is made anew", async () => {
  const outcomes = [Promise.reject(new Error("no file descriptor is left")), Promise.resolve("it")];
  let made = 0;
  const ask = madeOnce(() => outcomes[made++] ?? Promise.resolve("another"));
  const failed = [ask(), ask()];
  for (const one of failed) await expect(one).rejects.toThrow("no file descriptor is left");
  expect(await Promise.all([ask(), ask()])).toEqual(["it", "it"]);
  expect(await ask()).toBe("it");
  expect(made).toBe(2);
});
