// Keeps a worker's right to a job by heartbeats, and stops its work when the right, or the job's time, is over.

import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { JobEvents } from "../events.ts";
import type { Job } from "../jobs/job.ts";
import type { JobStore } from "../jobs/store.ts";
import { heartbeatMs, leaseMarginMs, leaseMs, lostAnswerMs } from "../limits.ts";

/** The reason why an attempt may not go on. */
export type LeaseEnd =
  /** Another worker has the job, or may have it soon. */
  | "lost"
  /** The job's time is over. */
  | "deadline"
  /** This worker stops. */
  | "handed-back"
  /** The job's caller has cancelled it. */
  | "cancelled";

/** A worker's right to a job, renewed until it is disposed of. */
export interface Lease extends Disposable {
  /** Aborts when the right ends. */
  readonly signal: AbortSignal;
  /** The reason for the end. Undefined while the right lasts. */
  ended(): LeaseEnd | undefined;
  /** The end of the job's time, by the clock's present setting. Time passes at the pace of the monotonic clock. */
  deadline(): number;
  /** The store has answered that the lease is lost. */
  lose(): void;
  handBack(): void;
  /**
   * The store has answered that the job was cancelled. From now on a heartbeat that finds the lease gone ends nothing. {@link cancel}
   * does.
   */
  cancelling(): void;
  cancel(): void;
  /** Ends the renewing. Resolves when no heartbeat is under way either. A late one would take back a lease that was given back. */
  stop(): Promise<void>;
}

/** The parts that renewing needs. */
export interface LeaseContext {
  clock: Clock;
  store: JobStore;
  events: JobEvents;
  /** Is the upstream's answer one that no other worker can get? Then no other worker gets the job for a time after the lease. */
  isAnswerAwaited(): boolean;
}

/** Keeps the lease of a job that was claimed at `claimedAt`, by the monotonic clock. */
export function createLease(job: Job, claimedAt: number, context: LeaseContext): Lease {
  const { clock } = context;
  const work = new AbortController();
  const over = new AbortController();
  let why: LeaseEnd | undefined;
  let isCancelling = false;
  const end = (reason: LeaseEnd) => {
    if (why || over.signal.aborted) return;
    why = reason;
    // A time-out is the upstream's fault, and counts as such.
    const isLate = reason === "deadline";
    const { UPSTREAM_TIMEOUT } = ErrorReason;
    const cause = new Error(`the attempt is over: ${reason}`);
    work.abort(isLate ? new RefusalError(UPSTREAM_TIMEOUT, { cause }) : cause);
    over.abort();
  };
  const overAt = claimedAt + job.deadline - (job.claimedAt ?? clock.now());
  const deadline = () => clock.now() + overAt - clock.steady();
  const untilDeadline = clock.sleep(overAt - clock.steady(), over.signal);
  untilDeadline.then(
    () => end("deadline"),
    () => {},
  );
  const renewing = renew(job, { claimedAt, deadline }, context, over.signal).then(
    () => {
      if (!isCancelling) end("lost");
    },
    () => {},
  );
  return {
    signal: work.signal,
    deadline,
    ended: () => why,
    lose: () => end("lost"),
    handBack: () => end("handed-back"),
    cancelling() {
      isCancelling = true;
    },
    cancel: () => end("cancelled"),
    stop() {
      over.abort();
      return renewing;
    },
    [Symbol.dispose]: () => over.abort(),
  };
}

/** Resolves when the lease is lost, by the monotonic clock. Rejects when `signal` aborts. */
async function renew(
  job: Job,
  { claimedAt, deadline }: { claimedAt: number; deadline: () => number },
  context: LeaseContext,
  signal: AbortSignal,
): Promise<void> {
  const { clock, store, events, isAnswerAwaited } = context;
  const { jobId, fence, lease } = job;
  const owner = lease?.owner ?? "";
  let until = claimedAt + leaseMs;
  for (;;) {
    const graceMs = isAnswerAwaited() ? lostAnswerMs : 0;
    const leftMs = until + graceMs - leaseMarginMs - clock.steady();
    if (leftMs <= 0) return;
    await clock.sleep(Math.min(heartbeatMs, leftMs), signal);
    const sentAt = clock.steady();
    try {
      const times = { now: clock.now(), deadline: deadline() };
      if (!(await store.renew(jobId, { kind: "heartbeat", fence, owner, ...times }))) return;
      until = sentAt + leaseMs;
    } catch (error) {
      events.trouble("a lease could not be renewed", jobId, error);
    }
  }
}
