// Decides what happens to a job that its upstream did not take: the next upstream, a pause, or failure. It is pure.

import { ErrorReason } from "#kit/base/errors.ts";
import type { NotTakenError } from "../../upstreams/media/port.ts";
import { failureFor, type Job, type JobFailure } from "../jobs/job.ts";
import { emptySinceOf } from "../jobs/lifecycle.ts";
import { firstWaitMs, maxEmptyMs, maxWaitMs } from "../limits.ts";

/** The next step of a job that its upstream refused. */
export type TurnedAway =
  | { kind: "fails"; failure: JobFailure }
  | {
      kind: "waits";
      /** Milliseconds. 0: the next upstream is asked at once. */
      pauseMs: number;
      nextUpstream: boolean;
      /** Can an earlier request have reached the upstream? */
      sent: boolean;
    };

/**
 * Goes on to the next upstream now, or to the first one later. Fails where waiting does not help, or has not helped for long enough.
 */
export function turnedAway(job: Job, error: NotTakenError, now: number): TurnedAway {
  const { upstreamIndex, spec, wait } = job;
  const { refusal, retryAfterMs, isCertain } = error;
  // After a request that may have reached the upstream, the job stays there. The exception is a job whose id was just searched for
  // without success.
  const sent = (job.sent && job.resumeId === undefined) || !isCertain;
  const nextUpstream = !sent && spec.upstreams.length > 1;
  if (nextUpstream && upstreamIndex + 1 < spec.upstreams.length) {
    return { kind: "waits", pauseMs: 0, nextUpstream, sent };
  }
  // Waiting does not help, unless another upstream was only busy.
  if (refusal === "denied" && (!nextUpstream || wait?.refusal === "denied")) {
    return { kind: "fails", failure: failureFor(ErrorReason.GENERATION_FAILED) };
  }
  const emptySince = emptySinceOf(wait, refusal, now);
  const leftMs = emptySince === undefined ? maxWaitMs : emptySince + maxEmptyMs - now;
  if (leftMs <= 0) return { kind: "fails", failure: takenByNone() };
  const rounds = Math.floor((wait?.times ?? 0) / spec.upstreams.length) + 1;
  const pauseMs = Math.max(pauseAfter(rounds, firstWaitMs, maxWaitMs), retryAfterMs ?? 0);
  return { kind: "waits", pauseMs: Math.min(pauseMs, leftMs), nextUpstream, sent };
}

/** The failure of a job that no upstream took, here or at another deployment. */
export function takenByNone(): JobFailure {
  const { SERVICE_UNAVAILABLE, UPSTREAM_UNAVAILABLE } = ErrorReason;
  return { ...failureFor(UPSTREAM_UNAVAILABLE), reason: SERVICE_UNAVAILABLE };
}

/** Milliseconds: twice as long each time. */
export function pauseAfter(times: number, firstMs: number, longestMs: number): number {
  return Math.min(firstMs * 2 ** Math.min(times - 1, 20), longestMs);
}
