import { clockSlackMs } from "#kit/lease-time.ts";
import {
  leaseMs,
  maxRepublishMs,
  maxSetAsideMs,
  maxWaitMs,
  rejectedKeptMs,
  stepDueMs,
  sweepRetryMs,
  unpublishedMs,
} from "../limits.ts";
import type { JobState } from "./job.ts";

/** Longest that a running job's lease lasts, in ms: a job that is set aside keeps it for its pause. */
const longestLeaseMs = Math.max(leaseMs, maxSetAsideMs);
const stepMs = Math.max(stepDueMs, sweepRetryMs);

/** Longest until a job of a state that is to change is looked at, in ms. */
const longestDueMs: readonly (readonly [JobState, number])[] = [
  ["reserving", stepMs],
  ["queued", Math.max(maxRepublishMs, maxWaitMs)],
  ["running", longestLeaseMs + unpublishedMs],
  ["settling", stepMs],
  ["failing", stepMs],
  ["rejected", rejectedKeptMs],
];

/** Of each state, the time after which no `dueAt` lies that a right clock wrote. */
export function latestDue(now: number): (readonly [JobState, number])[] {
  return longestDueMs.map(([state, ms]) => [state, now + ms + clockSlackMs]);
}

/** The time after which no lease ends that a right clock wrote. */
export function latestLease(now: number): number {
  return now + longestLeaseMs + clockSlackMs;
}
