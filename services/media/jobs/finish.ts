import type { Clock } from "#kit/clock.ts";
import type { JobEvents } from "../events.ts";
import type { FailPoints } from "../fail-points.ts";
import type { JobHolds } from "./holds.ts";
import type { Job } from "./job.ts";
import type { JobStore } from "./store.ts";

/** What ending a job needs. */
export interface FinishContext {
  clock: Clock;
  store: JobStore;
  holds: JobHolds;
  events: JobEvents;
  failPoints: FailPoints;
  /** Ms for which terminal jobs are kept; 0: for ever. */
  retentionMs: number;
}

/** Drives a `settling` or `failing` job to its end; anybody may, at any time, also several at once. */
export async function finish(job: Job, context: FinishContext): Promise<void> {
  if (job.state === "settling") await complete(job, context);
  else if (job.state === "failing") await fail(job, context);
}

/** Charged first, completed second: so a completed job is always paid for. */
async function complete(job: Job, context: FinishContext): Promise<void> {
  const { clock, store, holds, events, failPoints } = context;
  failPoints("won");
  const charged = await holds.settle(job);
  failPoints("settled");
  const now = clock.now();
  const expiresAt = expiryOf(now, context);
  const ended = await store.apply(job.jobId, { kind: "complete", charged, expiresAt, now });
  if (!ended) return;
  failPoints("completed");
  if (charged !== job.spec.price) events.holdEndedOtherwise(job, charged);
  events.ended(ended);
}

async function fail(job: Job, context: FinishContext): Promise<void> {
  const { clock, store, holds, events, failPoints } = context;
  failPoints("lost");
  const charged = await holds.release(job);
  failPoints("released");
  const now = clock.now();
  const expiresAt = expiryOf(now, context);
  const ended = await store.apply(job.jobId, { kind: "fail", charged, expiresAt, now });
  if (!ended) return;
  failPoints("failed");
  if (charged !== 0n) events.holdEndedOtherwise(job, charged);
  events.ended(ended);
}

function expiryOf(now: number, { retentionMs }: FinishContext): number | undefined {
  return retentionMs > 0 ? now + retentionMs : undefined;
}
