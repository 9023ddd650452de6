// Tells workers by the queue that a job may be claimed. A lost wake-up only delays a job, because workers also look for
// themselves.

import type { WakeQueue } from "#kit/queue/port.ts";
import { joinTrace, type TraceHeaders } from "#kit/telemetry/spans.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { JobEvents } from "../events.ts";
import type { FailPoints } from "../fail-points.ts";
import type { Job, MediaKind } from "./job.ts";
import type { JobStore } from "./store.ts";

/** The parts that waking workers needs. */
export interface WakeContext {
  clock: Clock;
  store: JobStore;
  queue: WakeQueue;
  events: JobEvents;
  failPoints: FailPoints;
}

/** The queue's topic of a kind of jobs. */
export function topicOf(kind: MediaKind): string {
  return `jobs-${kind}`;
}

/** Leaves a wake-up for a job that may be claimed. Never rejects: the sweeper publishes it later where this fails. */
export function publishWake(job: Job, context: WakeContext): Promise<void> {
  return joinTrace(traceOf(job), () => publish(job, context));
}

/** The trace of a job, for headers. */
export function traceOf({ spec }: Job): TraceHeaders {
  return spec.traceparent === undefined ? {} : { traceparent: spec.traceparent };
}

async function publish(job: Job, context: WakeContext): Promise<void> {
  const { clock, store, queue, events, failPoints } = context;
  try {
    await queue.publish(topicOf(job.spec.kind), job.jobId);
    failPoints("published");
    await store.renew(job.jobId, { kind: "published", now: clock.now() });
  } catch (error) {
    events.trouble("a job's wake-up could not be published", job.jobId, error);
  }
}
