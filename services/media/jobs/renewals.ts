// Decides commands that a job gets many times, such as heartbeats and progress. It is a part of `lifecycle.ts` that needs no
// spec, which may be long.

import {
  leaseMs,
  maxRepublishMs,
  republishMs,
  reservingLeaseMs,
  stepDueMs,
  unpublishedMs,
} from "../limits.ts";
import { isParked, type JobHead, leaseEnd } from "./job.ts";

/**
 *
 * Commands that a job gets again and again. Its spec, which may be long, is not read for them, because they do not need or change it.
 * `now` is ms since the epoch. `fence` is that of the worker's claim.
 */
export type RenewCommand =
  /** `reserving`: its submission is still alive. */
  | { kind: "beat"; now: number }
  /** `queued` or `running`: a wake-up was published. */
  | { kind: "published"; now: number }
  /**
   * The worker is alive. `owner`: that worker, even where it counted as lost. `deadline`: the end of the job's time, by the clock's
   * present setting. Default of both: unchanged.
   */
  | { kind: "heartbeat"; fence: number; owner?: string; now: number; deadline?: number }
  | { kind: "progress"; fence: number; percent: number }
  /** The sweeper looks again at that time. */
  | { kind: "defer"; until: number };

/** The job after a command. Undefined where its state does not allow that. Changes none of its arguments. */
export function stepRenewed<J extends JobHead>(job: J, command: RenewCommand): J | undefined {
  switch (command.kind) {
    case "beat":
      if (job.state !== "reserving") return undefined;
      return { ...job, dueAt: command.now + reservingLeaseMs };
    case "published":
      return published(job, command.now);
    case "heartbeat": {
      if (!isWorkers(job, command.fence)) return undefined;
      const deadline = command.deadline ?? job.deadline;
      const owner = command.owner ?? job.lease?.owner ?? "";
      return leased({ ...job, deadline }, owner, command.now + leaseMs);
    }
    case "progress": {
      if (!isWorkers(job, command.fence)) return undefined;
      const percent = Math.min(Math.max(Math.floor(command.percent), 0), 99);
      return percent > job.progress ? { ...job, progress: percent } : undefined;
    }
    case "defer":
      return { ...job, dueAt: command.until };
  }
}

function published<J extends JobHead>(job: J, now: number): J | undefined {
  if (job.state !== "queued" && job.state !== "running") return undefined;
  // The wake-up was published before an upstream refused the job. No worker should be woken for it now.
  if (isParked(job)) return job;
  const pauseMs = Math.min(republishMs * 2 ** job.publications, maxRepublishMs);
  // A running job is looked at again when its lease, or its time, is over.
  const next = job.state === "queued" ? now + pauseMs : Math.max(leaseEnd(job), now + stepDueMs);
  return {
    ...job,
    publications: job.publications + 1,
    dueAt: Math.min(next, job.deadline),
  };
}

/** Does the worker of this claim still have the job? */
export function isWorkers(job: Pick<JobHead, "state" | "fence">, fence: number): boolean {
  return job.state === "running" && job.fence === fence;
}

/** The job with its lease until then. An empty owner: no worker has it. */
export function leased<J extends JobHead>(
  job: J,
  owner: string,
  until: number,
  counted = job.lease?.counted ?? false,
): J {
  const lease = { owner, until, counted };
  return { ...job, lease, dueAt: whenLost({ ...job, lease }) };
}

/** When a running job is looked at whose worker gives no further sign. */
export function whenLost(job: Pick<JobHead, "lease" | "deadline">): number {
  return Math.min(leaseEnd(job) + unpublishedMs, job.deadline);
}
