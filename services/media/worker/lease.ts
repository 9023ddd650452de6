import type { Clock } from "#kit/clock.ts";
import type { JobEvents } from "../events.ts";
import type { Job } from "../jobs/job.ts";
import type { JobStore } from "../jobs/store.ts";
import { heartbeatMs, leaseMarginMs } from "../limits.ts";

/** Why an attempt may not go on. */
export type LeaseEnd =
  /** Another worker has the job, or may have it soon. */
  | "lost"
  /** The job's time is over. */
  | "deadline"
  /** This worker stops. */
  | "handed-back";

/** A worker's right to a job, renewed until it is disposed of. */
export interface Lease extends Disposable {
  /** Aborts when the right ends. */
  readonly signal: AbortSignal;
  /** Why it ended; undefined while it lasts. */
  ended(): LeaseEnd | undefined;
  /** The store has said so. */
  lose(): void;
  handBack(): void;
  /** Renews it no more. Resolves when no heartbeat is under way either: one that came late would take back what is given back. */
  stop(): Promise<void>;
}

/** What renewing needs. */
export interface LeaseContext {
  clock: Clock;
  store: JobStore;
  events: JobEvents;
}

/** Keeps the lease of a job that was just claimed. */
export function createLease(job: Job, context: LeaseContext): Lease {
  const { clock } = context;
  const work = new AbortController();
  const over = new AbortController();
  let why: LeaseEnd | undefined;
  const end = (reason: LeaseEnd) => {
    if (why || over.signal.aborted) return;
    why = reason;
    work.abort(new Error(`the attempt is over: ${reason}`));
    over.abort();
  };
  const untilDeadline = clock.sleep(job.deadline - clock.now(), over.signal);
  untilDeadline.then(
    () => end("deadline"),
    () => {},
  );
  const renewing = renew(job, context, over.signal).then(
    () => end("lost"),
    () => {},
  );
  return {
    signal: work.signal,
    ended: () => why,
    lose: () => end("lost"),
    handBack: () => end("handed-back"),
    stop() {
      over.abort();
      return renewing;
    },
    [Symbol.dispose]: () => over.abort(),
  };
}

/** Resolves when the lease is lost; rejects when `signal` aborts. */
async function renew(job: Job, context: LeaseContext, signal: AbortSignal): Promise<void> {
  const { clock, store, events } = context;
  const { jobId, fence } = job;
  let until = job.lease?.until ?? clock.now();
  for (;;) {
    const leftMs = until - leaseMarginMs - clock.now();
    if (leftMs <= 0) return;
    await clock.sleep(Math.min(heartbeatMs, leftMs), signal);
    try {
      const held = await store.apply(jobId, { kind: "heartbeat", fence, now: clock.now() });
      if (!held) return;
      until = held.lease?.until ?? until;
    } catch (error) {
      events.trouble("a lease could not be renewed", jobId, error);
    }
  }
}
