import { expect, test } from "vitest";
import { optionalNumber } from "./body.ts";

test.each([
  [{ min: 1, max: 10 }, 11, "from 1 to 10"],
  [{ min: 1 }, 0, "of at least 1"],
  [{ max: 4 }, 4.1, "of at most 4"],
])("a number outside of %j is told its bounds", (rule, n, bounds) => {
  const message = `The parameter 'n' must be a number ${bounds}.`;
  expect(() => optionalNumber({ n }, "n", rule)).toThrow(message);
});

test("the bounds themselves are inside", () => {
  const rule = { min: 1, max: 10 };
  expect([1, 10].map((n) => optionalNumber({ n }, "n", rule))).toEqual([1, 10]);
});
