// Decides what a command does to a job that has ended. It is a part of `lifecycle.ts`, which has the commands for open jobs.

import { deletedKeptMs, maxFailedRequestBytes } from "../limits.ts";
import {
  isTerminal,
  isUnannounced,
  type Job,
  noted,
  repeatBytesOf,
  wasCancelled,
  withoutText,
} from "./job.ts";

/** Every command for a job that has ended. `now` is ms since the epoch. */
export type EndedCommand =
  /** Terminal or `rejected`: its references were unpinned. */
  | { kind: "unpinned" }
  /** `completed`: its outputs are needed until then. */
  | { kind: "keep"; until: number; now: number }
  /** `failed` or `deleted`: its account has too many newer ones, so its time is over. */
  | { kind: "retire"; now: number }
  /** Terminal → `deleted`: the job is hidden, and the caller's texts are removed. */
  | { kind: "delete"; now: number }
  /** `deleted`: the bytes of its outputs are gone, and its references were unpinned. */
  | { kind: "erased" }
  /** Terminal: its end is written down among the webhooks. */
  | { kind: "announced" };

/** The job after a command. Undefined where its state does not allow that. Changes none of its arguments. */
export function stepEnded(job: Job, command: EndedCommand): Job | undefined {
  switch (command.kind) {
    case "unpinned":
      return unpinned(job);
    case "keep":
      return kept(job, command);
    case "retire":
      return retired(job, command.now);
    case "delete":
      return isTerminal(job) && !isUnannounced(job) ? deleted(job, command.now) : undefined;
    case "erased":
      if (job.state !== "deleted") return undefined;
      return { ...job, outputs: [], pinned: [], pinsHeld: false, dueAt: job.expiresAt };
    case "announced":
      return announced(job);
  }
}

/**
 *
 * May an operator repeat the request of a job that ended like this? Not where the caller cancelled it, or where its request is large,
 * because a failed job is free.
 */
export function mayBeRepeated(job: Job): boolean {
  if (job.state !== "failed" || wasCancelled(job)) return false;
  return repeatBytesOf(job.spec) <= maxFailedRequestBytes;
}

function unpinned(job: Job): Job | undefined {
  if (!isTerminal(job) && job.state !== "rejected") return undefined;
  const dueAt = job.state === "rejected" ? job.dueAt : job.expiresAt;
  return { ...job, pinsHeld: false, dueAt };
}

function kept(job: Job, { until, now }: Extract<EndedCommand, { kind: "keep" }>): Job | undefined {
  const { state, expiresAt, pinsHeld, dueAt } = job;
  if (state !== "completed") return undefined;
  if (expiresAt === undefined || expiresAt >= until) return job;
  if (expiresAt <= now) return undefined;
  return { ...job, expiresAt: until, dueAt: pinsHeld ? dueAt : until };
}

function retired(job: Job, now: number): Job | undefined {
  if (job.state !== "failed" && job.state !== "deleted") return undefined;
  if (job.expiresAt !== undefined && job.expiresAt <= now) return undefined;
  return { ...job, expiresAt: now, dueAt: now };
}

function announced(job: Job): Job | undefined {
  if (!isUnannounced(job) || !job.webhook) return undefined;
  return { ...job, webhook: { ...job.webhook, isAnnounced: true } };
}

/**
 * The rest shows that its idempotency key was used, for as long as the job would have been kept. Without such a key the rest stays for
 * a while, so that a listing can go on behind it.
 */
function deleted(job: Job, now: number): Job {
  const soon = Math.min(job.expiresAt ?? Number.POSITIVE_INFINITY, now + deletedKeptMs);
  const expiresAt = job.slot ? job.expiresAt : soon;
  const spec = { ...withoutText(job.spec), metadata: undefined };
  return noted({ ...job, spec, state: "deleted", expiresAt, dueAt: now }, now);
}
