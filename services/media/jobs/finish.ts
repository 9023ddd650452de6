// Ends a job: charges or releases its hold first, then shows the end. The worker, the sweeper and a caller's cancellation all
// come here.

import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { JobEvents } from "../events.ts";
import type { FailPoints } from "../fail-points.ts";
import { maxFailedJobs, retiredAtOnce } from "../limits.ts";
import { type CancelUpstreamContext, cancelAtUpstream } from "./cancel-upstream.ts";
import { earnedOf, isShown, isTerminal, type Job, owedOf, wasCancelled } from "./job.ts";
import { hasWon, type JobHolds } from "./job-holds.ts";
import type { JobStore, SurplusQuery } from "./store.ts";

/** The parts that ending a job needs. */
export interface FinishContext extends CancelUpstreamContext {
  clock: Clock;
  store: JobStore;
  holds: JobHolds;
  events: JobEvents;
  failPoints: FailPoints;
  /** Milliseconds for which terminal jobs are kept. 0: for ever. */
  retentionMs: number;
}

/** Drives a `settling` or `failing` job to its end. Any process may do it, at any time, even several at once. */
export async function finish(job: Job, context: FinishContext): Promise<void> {
  if (job.state === "settling") await complete(job, context);
  else if (job.state === "failing") await fail(job, context);
}

/** Charged first, completed second, so that a completed job is always paid for. */
async function complete(job: Job, context: FinishContext): Promise<void> {
  const { clock, store, holds, events, failPoints } = context;
  failPoints("won");
  const charged = await holds.end(job, clock.now());
  failPoints("settled");
  const now = clock.now();
  const expiresAt = expiryOf(now, context);
  const ended = await store.apply(job.jobId, { kind: "complete", charged, expiresAt, now });
  if (!ended) return;
  failPoints("completed");
  if (charged !== earnedOf(job)) events.holdEndedOtherwise(job, charged);
  events.ended(ended);
}

async function fail(job: Job, context: FinishContext): Promise<void> {
  const { clock, store, holds, events, failPoints } = context;
  failPoints("lost");
  const owed = owedOf(job);
  const [charged] = await Promise.all([
    holds.end(job, clock.now()),
    // Before the job is terminal. If this process dies, the next one asks the upstream again.
    cancelAtUpstream(job, job.resumeId, context),
  ]);
  failPoints("released");
  const now = clock.now();
  const expiresAt = expiryOf(now, context);
  const ended = await store.apply(job.jobId, { kind: "fail", charged, expiresAt, now });
  if (!ended) return;
  failPoints("failed");
  if (charged !== owed) events.holdEndedOtherwise(job, charged);
  events.ended(ended);
  await retireOldest(ended, "failed", context);
}

/** Ends the time of an account's oldest jobs in a state, where it has more than allowed. The next one repeats this where it fails. */
export async function retireOldest(
  { jobId, accountId, spec: { kind } }: Job,
  state: SurplusQuery["state"],
  { clock, store, events }: Pick<FinishContext, "clock" | "store" | "events">,
): Promise<void> {
  try {
    const query = { accountId, state, kind, newest: maxFailedJobs, limit: retiredAtOnce };
    for (const surplus of await store.surplus(query)) {
      await store.apply(surplus, { kind: "retire", now: clock.now() });
    }
  } catch (error) {
    events.trouble("an account's oldest jobs are left to its next one", jobId, error);
  }
}

function expiryOf(now: number, { retentionMs }: FinishContext): number | undefined {
  return retentionMs > 0 ? now + retentionMs : undefined;
}

/** Ends the hold of a job that has ended, with its record. Where that fails, billing ends it with the verdict. */
export async function endHold(
  job: Job | undefined,
  { holds, clock, events }: Pick<FinishContext, "holds" | "clock" | "events">,
): Promise<void> {
  if (!job || !(hasWon(job) || job.state === "failing" || job.state === "failed")) return;
  await holds.end(job, clock.now()).catch((error) => {
    events.trouble("a hold is ended without its record", job.jobId, error);
  });
}

/**
 * Ends a job that its caller does not want any longer, and answers it in its state then. That is `failed`, or still `failing` where its
 * hold could not be ended at once. The sweeper then ends the hold. A job that was cancelled before, or at the same moment, is answered
 * in the same way. Its end is driven on, because the other cancellation may still be working on it. A job that has ended otherwise or
 * is being charged is refused with JOB_NOT_CANCELLABLE. One that is not accepted yet is refused with SERVICE_UNAVAILABLE.
 */
export async function cancelJob(jobId: string, context: FinishContext): Promise<Job> {
  const { clock, store, events, failPoints } = context;
  const cancelled = await store.apply(jobId, { kind: "cancel", now: clock.now() });
  const job = cancelled ?? cancelledBefore(await store.find(jobId));
  if (isTerminal(job)) return job;
  if (cancelled) failPoints("cancelled");
  await finish(job, context).catch((error) =>
    events.trouble("a cancelled job's end is left to the sweeper", jobId, error),
  );
  const ended = await store.find(jobId);
  return ended && isShown(ended) ? ended : job;
}

function cancelledBefore(job: Job | undefined): Job {
  if (!job || !isShown(job)) refuse(ErrorReason.JOB_NOT_FOUND);
  if (wasCancelled(job)) return job;
  if (job.state !== "reserving") refuse(ErrorReason.JOB_NOT_CANCELLABLE);
  // Its submission has no answer yet, and its price may be about to be held.
  return refuse(ErrorReason.SERVICE_UNAVAILABLE, {
    message: "The job is being accepted. Send the request again.",
    metadata: { retry_after_ms: "1000" },
  });
}
