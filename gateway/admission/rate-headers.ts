import type { RateVerdict } from "#kit/rate-buckets.ts";

/** Tolerance for sums of fractions of milliseconds. */
const epsilonMs = 1e-6;

/**
 * OpenAI's headers: the limit a minute, what is left of it, and the time until all of it is there again ("12ms", "6.5s",
 * "1m0s"; rounded up to the millisecond).
 */
export function rateHeaders(verdict: RateVerdict): Record<string, string> {
  return {
    "x-ratelimit-limit-requests": String(verdict.limit),
    "x-ratelimit-remaining-requests": String(verdict.remaining),
    "x-ratelimit-reset-requests": formatDuration(verdict.resetMs),
  };
}

function formatDuration(durationMs: number): string {
  const ms = Math.ceil(durationMs - epsilonMs);
  if (ms < 1_000) return `${Math.max(0, ms)}ms`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = `${(ms % 60_000) / 1_000}s`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}
