import { expect, test } from "vitest";
import { retryAfterOf } from "./retry-after.ts";

const now = Date.UTC(2026, 0, 15, 12);

test.each([
  [{ "retry-after": "7" }, 7000],
  [{ "retry-after": " 1.5 " }, 1500],
  [{ "retry-after": "0" }, 0],
  [{ "retry-after": "Thu, 15 Jan 2026 12:00:20 GMT" }, 20_000],
  [{ "retry-after": "Thu, 15 Jan 2026 11:00:00 GMT" }, 0],
  [{ "retry-after": "9", "retry-after-ms": "250" }, 250],
  [{ "retry-after": "9", "retry-after-ms": "soon" }, 9000],
  [{ "retry-after": "-5" }, undefined],
  [{ "retry-after": "soon" }, undefined],
  [{ "retry-after": "" }, undefined],
  [{}, undefined],
])("reads when to come again from %j", (headers, expected) => {
  expect(retryAfterOf(headers, now)).toBe(expected);
});
