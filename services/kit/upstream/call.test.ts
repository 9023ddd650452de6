import { expect, test } from "vitest";
import { objectIn } from "./call.ts";

const nested = (depth: number) =>
  Buffer.from(`{"a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`);

test("an answer that is nested too deep to be walked is none", () => {
  expect(objectIn(nested(1_000))).toBeDefined();
  expect(objectIn(nested(1_001))).toBeUndefined();
  expect(objectIn(nested(200_000))).toBeUndefined();
});

test("brackets in a text are no nesting", () => {
  const a = "[{".repeat(100_000);
  expect(objectIn(Buffer.from(JSON.stringify({ a })))).toEqual({ a });
});
