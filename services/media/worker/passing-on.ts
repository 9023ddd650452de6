// Chooses the upstream of an attempt, and gives the job back to the queue where that upstream rests.

import type { Job } from "../jobs/job.ts";
import { publishWake } from "../jobs/wake.ts";
import { untilStored } from "../until-stored.ts";
import type { AttemptContext } from "./attempt.ts";
import type { Lease } from "./lease.ts";

/** The index of the upstream that the worker asks for this job. Once a generation may have begun at an upstream, it stays that one. */
export function placeOf(job: Job, { upstreams }: Pick<AttemptContext, "upstreams">): number {
  const { spec, upstreamIndex, sent, resumeId } = job;
  if (sent || resumeId !== undefined) return upstreamIndex;
  return upstreams.placeToBegin(spec.upstreams, spec.upstreamModel, upstreamIndex);
}

/**
 * Gives a job whose upstream rests back to the queue, for another upstream, which may have no free place. False where the job does not
 * belong to this worker any longer.
 */
export async function passOn(
  { jobId, fence }: Job,
  upstreamIndex: number,
  lease: Lease,
  context: AttemptContext,
): Promise<boolean> {
  const { clock, store } = context;
  await lease.stop();
  const back = await untilStored({ clock, signal: lease.signal }, () =>
    store.apply(jobId, { kind: "pass-on", fence, upstreamIndex, now: clock.now() }),
  );
  if (!back) return false;
  context.events.givenBack(back, "resting");
  await publishWake(back, context);
  return true;
}
