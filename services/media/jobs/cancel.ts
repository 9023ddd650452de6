import { ErrorReason, refuse } from "#kit/errors.ts";
import { type FinishContext, finish } from "./holds.ts";
import { isShown, isTerminal, type Job, wasCancelled } from "./job.ts";

/**
 * Ends a job that its caller does not want any more, and answers it as it then is: `failed`, or still `failing` where its hold
 * could not be ended at once, which the sweeper then does. One that was cancelled before, or at the same moment, is answered so
 * too: its end is driven on, for the other cancel may still be about it. Refuses with JOB_NOT_CANCELLABLE what has ended
 * otherwise or is being charged, and with SERVICE_UNAVAILABLE what is not accepted yet.
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
