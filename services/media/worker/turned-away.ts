import { ErrorReason, type Reason } from "#kit/errors.ts";
import type { NotTakenError } from "../../upstreams/media/port.ts";
import type { Job } from "../jobs/job.ts";
import { firstWaitMs, maxWaitMs } from "../limits.ts";

/** What becomes of a job that its upstream would not take. */
export type TurnedAway =
  | { kind: "fails"; reason: Reason }
  | {
      kind: "waits";
      /** Ms; 0: the next upstream is asked at once. */
      pauseMs: number;
      nextUpstream: boolean;
      /** An earlier request may have reached the upstream all the same. */
      sent: boolean;
    };

/** Goes on to the next upstream now, or to the first one later; fails where waiting mends nothing. */
export function turnedAway(job: Job, error: NotTakenError): TurnedAway {
  const { upstreamIndex, spec, wait } = job;
  const { refusal, retryAfterMs, isCertain } = error;
  // An attempt that may have reached the upstream keeps the job there, unless it was looked for by its id just now, in vain.
  const sent = (job.sent && job.resumeId === undefined) || !isCertain;
  const nextUpstream = !sent && spec.upstreams.length > 1;
  if (nextUpstream && upstreamIndex + 1 < spec.upstreams.length) {
    return { kind: "waits", pauseMs: 0, nextUpstream, sent };
  }
  // Waiting mends nothing, unless another upstream was only busy.
  if (refusal === "denied" && (!nextUpstream || wait?.refusal === "denied")) {
    return { kind: "fails", reason: ErrorReason.GENERATION_FAILED };
  }
  const rounds = Math.floor((wait?.times ?? 0) / spec.upstreams.length) + 1;
  const pauseMs = Math.max(pauseAfter(rounds, firstWaitMs, maxWaitMs), retryAfterMs ?? 0);
  return { kind: "waits", pauseMs, nextUpstream, sent };
}

/** Ms: twice as long each time. */
export function pauseAfter(times: number, firstMs: number, longestMs: number): number {
  return Math.min(firstMs * 2 ** Math.min(times - 1, 20), longestMs);
}
