// Reads how long an upstream asks to be left alone.

import type { HttpReply } from "#kit/upstream/client.ts";

/** `Retry-After-Ms`, or `Retry-After` in seconds or as a date, in milliseconds from now. Undefined where it is none of these. */
export function retryAfterOf(headers: HttpReply["headers"], nowMs: number): number | undefined {
  const precise = Number(headers["retry-after-ms"] || Number.NaN);
  if (precise >= 0) return precise;
  const text = headers["retry-after"]?.trim();
  if (!text) return undefined;
  if (/^\d{1,9}(\.\d+)?$/.test(text)) return Number(text) * 1000;
  // Dates of HTTP begin with the day's name. Date.parse would make a date of nearly any text.
  const at = /^[A-Z][a-z]+, /.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}
