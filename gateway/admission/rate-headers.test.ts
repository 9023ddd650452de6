import { expect, test } from "vitest";
import { rateHeaders } from "./rate-headers.ts";

test.each([
  [0, "0ms"],
  [0.06, "1ms"],
  [12, "12ms"],
  [999.1, "1s"],
  [6_500, "6.5s"],
  [59_999, "59.999s"],
  [60_000, "1m0s"],
  [61_250, "1m1.25s"],
])("%d ms until reset is %s", (resetMs, text) => {
  const verdict = { ok: true, limit: 60, remaining: 3, resetMs, retryAfterMs: 0 };
  expect(rateHeaders(verdict)).toEqual({
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-remaining-requests": "3",
    "x-ratelimit-reset-requests": text,
  });
});
