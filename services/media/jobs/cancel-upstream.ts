// Asks an upstream to stop work on a job that its caller does not want any longer. The worker of the job and the process that
// ends it call this.

import { withinTime } from "#kit/base/abort.ts";
import { ErrorReason } from "#kit/base/errors.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { MediaUpstreams } from "../../upstreams/media/port.ts";
import type { JobEvents } from "../events.ts";
import { cancelUpstreamMs } from "../limits.ts";
import { type Job, upstreamOf, wasCancelled } from "./job.ts";

/** The parts that cancelling at an upstream needs. */
export interface CancelUpstreamContext {
  clock: Clock;
  events: JobEvents;
  upstreams: Pick<MediaUpstreams, "cancel">;
}

/**
 * Asks the upstream to cancel the task of a job that was cancelled, or whose time is over. It does so where the upstream has named the
 * task and its protocol can cancel. A second request does no harm. Never rejects, and takes at most {@link cancelUpstreamMs}. Only the
 * operator's costs depend on it.
 */
export async function cancelAtUpstream(
  job: Job,
  resumeId: string | undefined,
  { clock, events, upstreams }: CancelUpstreamContext,
): Promise<void> {
  if (resumeId === undefined || !isUnwanted(job)) return;
  const { jobId, spec } = job;
  const { kind, upstreamModel } = spec;
  const late = () => new Error("the upstream took too long to cancel");
  try {
    const task = { jobId, kind, upstreamModel, upstream: upstreamOf(job), resumeId };
    const isTaken = await withinTime({ clock, ms: cancelUpstreamMs, late }, (signal) =>
      upstreams.cancel({ ...task, signal }),
    );
    events.cancelledUpstream(job, isTaken);
  } catch (error) {
    events.trouble("an upstream could not be told that its task is cancelled", jobId, error);
  }
}

/** Further work of its upstream would be paid for and thrown away. */
function isUnwanted(job: Job): boolean {
  return wasCancelled(job) || job.failure?.reason === ErrorReason.UPSTREAM_TIMEOUT;
}
