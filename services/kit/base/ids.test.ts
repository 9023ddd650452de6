import { expect, test } from "vitest";
import { randomIds } from "./ids.ts";

test("ids have their prefix and length, and never repeat", () => {
  const made = Array.from({ length: 5_000 }, () => randomIds.make("job"));
  expect(made.every((id) => /^job_[a-z0-9]{24}$/.test(id))).toBe(true);
  expect(new Set(made).size).toBe(made.length);
  expect(randomIds.secret()).toMatch(/^[A-Za-z0-9]{40}$/);
});

test("every character is drawn about equally often", () => {
  const counts = new Map<string, number>();
  for (const char of randomIds.make("x", 72_000).slice(2))
    counts.set(char, (counts.get(char) ?? 0) + 1);
  expect(counts.size).toBe(36);
  // 2,000 expected of each; seven standard deviations are about 310.
  for (const count of counts.values()) expect(Math.abs(count - 2_000)).toBeLessThan(310);
});
