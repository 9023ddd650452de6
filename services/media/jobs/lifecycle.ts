// Decides what a command does to a job. It is pure, and the only place that changes a job's state. Both databases' stores call
// it. `ended.ts` and `renewals.ts` are parts of it.

import { maxFailedTries } from "#common/agreements/hold-client.ts";
import { ErrorReason, reasonName } from "#kit/base/errors.ts";
import type { Refusal } from "../../upstreams/media/port.ts";
import {
  leaseMs,
  lostAnswerMs,
  maxQueuedMs,
  maxRunningMs,
  maxWaitMs,
  rejectedKeptMs,
  reservingLeaseMs,
  stepDueMs,
  unpublishedMs,
} from "../limits.ts";
import type { PinnedReference } from "../references/port.ts";
import { type EndedCommand, mayBeRepeated, stepEnded } from "./ended.ts";
import {
  failureFor,
  isHeld,
  isParked,
  type Job,
  type JobFailure,
  type JobOutput,
  type JobWait,
  leaseEnd,
  noted,
  refusalWords,
  upstreamOf,
  withoutClaim,
  withoutLastTry,
  withoutText,
} from "./job.ts";
import {
  answerLost,
  failureOnceLost,
  isAnswerAwaited,
  mayBegin,
  mayHaveBegun,
  wasAnswerLost,
} from "./lost-answer.ts";
import { isWorkers, leased, type RenewCommand, stepRenewed, whenLost } from "./renewals.ts";

/** Every command for a job. `now` is ms since the epoch. `fence` is that of the worker's claim. */
export type JobCommand =
  | RenewCommand
  /** `reserving`: its references are in the account's storage. */
  | { kind: "attach"; pinned: readonly PinnedReference[]; now: number }
  /** `reserving → queued`: its hold is open. */
  | { kind: "accept"; now: number }
  /** `reserving → rejected`: the idempotency key is free again. */
  | { kind: "reject"; failure: JobFailure; now: number }
  /**
   * `queued → running`, or a `running` job whose lease is over to a new worker. A job without a further attempt, or whose time is over,
   * becomes `failing` instead. A lost job whose answer only its lost worker can bring is given to no worker yet (`abandoned`).
   */
  | { kind: "claim"; owner: string; now: number; leasesOverAt?: number | undefined }
  /**
   * A `running` job whose worker is lost, and the upstream's answer with it. The job waits for that worker for a time. Then it becomes
   * `failing`, or can be claimed again.
   */
  | { kind: "abandoned"; now: number }
  /** A request that begins the generation is about to be sent to the upstream. */
  | { kind: "sending"; fence: number }
  /** The upstream has named its task, which the next worker of the job resumes. */
  | { kind: "resumable"; fence: number; resumeId: string }
  /**
   * The worker stops for reasons of its own. Its attempt does not count, unless the upstream may have begun the work for an answer that
   * only this worker could get. `running → failing` where that work must not be requested again.
   */
  | { kind: "hand-back"; fence: number; now: number }
  /**
   * `running → queued`: the upstream refused the job, which costs no attempt. It is offered again at `until`, at the next upstream
   * where the command says so. `sent`: an earlier request may still have reached the upstream.
   */
  | ({ kind: "wait"; refusal: Refusal } & GivenBack)
  /**
   * `running → queued`: nothing was sent, because its upstream rests. Another of its upstreams gets it at once. This is neither an
   * attempt nor a failed try.
   */
  | { kind: "pass-on"; fence: number; upstreamIndex: number; now: number }
  /** `queued`: the time of its wait is over. */
  | { kind: "offer"; now: number }
  /** The upstream's answer is unknown, or the request led to nothing. The job can be claimed again at `until`. */
  | ({ kind: "set-aside" } & GivenBack)
  /** `running → settling`: this attempt's outputs are the job's. */
  | {
      kind: "win";
      fence: number;
      outputs: readonly JobOutput[];
      now: number;
      deadline?: number;
    }
  /** `running → failing`. */
  | { kind: "lose"; fence: number; failure: JobFailure; now: number }
  /** `queued | running → failing`, where its time is over. A living worker ends its job itself, by the monotonic clock. */
  | { kind: "expire"; now: number }
  /** `queued | running → failing`: its caller cancelled it. */
  | { kind: "cancel"; now: number }
  /** `settling → completed`: `charged` was charged. */
  | { kind: "complete"; charged: bigint; expiresAt: number | undefined; now: number }
  /** `failing → failed`: the hold has ended, and `charged` was charged (`owedOf`, unless an operator ended it otherwise). */
  | { kind: "fail"; charged: bigint; expiresAt: number | undefined; now: number }
  | EndedCommand;

/** The way in which a job goes back to the next worker that claims it. */
interface GivenBack {
  fence: number;
  until: number;
  nextUpstream: boolean;
  sent: boolean;
  now: number;
}

/** The job after a command. Undefined where its state does not allow that. Changes none of its arguments. */
export function step(job: Job, command: JobCommand): Job | undefined {
  switch (command.kind) {
    case "beat":
    case "published":
    case "heartbeat":
    case "progress":
    case "defer":
      return stepRenewed(job, command);
    case "attach":
    case "accept":
    case "reject":
      return job.state === "reserving" ? stepReserving(job, command) : undefined;
    case "claim":
      return claim(job, command);
    case "abandoned":
      return isLost(job, command.now) ? abandoned(job, command.now) : undefined;
    case "offer":
      return offer(job, command.now);
    case "sending":
    case "resumable":
    case "hand-back":
    case "wait":
    case "pass-on":
    case "set-aside":
    case "win":
    case "lose":
      return isWorkers(job, command.fence) ? stepRunning(job, command) : undefined;
    case "expire":
      return isOverdue(job, command.now) ? expire(job, command.now) : undefined;
    case "cancel":
      return cancel(job, command.now);
    case "complete":
      return job.state === "settling" ? end(job, "completed", command) : undefined;
    case "fail":
      return job.state === "failing" ? end(job, "failed", command) : undefined;
    case "unpinned":
    case "keep":
    case "retire":
    case "announced":
    case "delete":
    case "erased":
      return stepEnded(job, command);
  }
}

type Of<K extends JobCommand["kind"]> = Extract<JobCommand, { kind: K }>;

function stepReserving(job: Job, command: Of<"attach" | "accept" | "reject">): Job {
  const { now } = command;
  switch (command.kind) {
    case "attach":
      return {
        ...job,
        // URLs may carry a signature. The spec names the imported files instead.
        spec: { ...job.spec, references: [] },
        pinned: job.pinned ?? command.pinned,
        dueAt: now + reservingLeaseMs,
      };
    case "accept":
      return noted(
        { ...job, state: "queued", dueAt: now + unpublishedMs, deadline: now + maxQueuedMs },
        now,
      );
    case "reject": {
      const { failure } = command;
      const spec = withoutText(job.spec);
      const rejected = { ...job, spec, state: "rejected", slot: undefined, failure } as const;
      return noted({ ...rejected, dueAt: now + rejectedKeptMs }, now, reasonName(failure.reason));
    }
  }
}

/** A queued job that waits may be claimed again, once its time has come. */
function offer(job: Job, now: number): Job | undefined {
  const { wait } = job;
  if (!isParked(job) || !wait) return undefined;
  const leftMs = (wait.until ?? 0) - now;
  // A time longer than any wait was written by a clock that was ahead.
  if (leftMs > 0 && leftMs <= maxWaitMs) return undefined;
  return { ...job, wait: { ...wait, until: undefined }, dueAt: now + unpublishedMs };
}

function claim(job: Job, { owner, now, leasesOverAt = now }: Of<"claim">): Job | undefined {
  if (job.state !== "queued" && !isLost(job, leasesOverAt)) return undefined;
  if (isParked(job)) return undefined;
  if (leasesOverAt >= job.deadline) return expire(job, now);
  const undecided = abandoned(job, leasesOverAt, now);
  if (undecided) return undecided;
  const counted = job.resumeId === undefined;
  // Never later than now: a clock that was ahead would have given the job too much time.
  const startedAt = Math.min(job.startedAt ?? now, now);
  const claimed: Job = {
    ...job,
    state: "running",
    attempts: job.attempts + (counted ? 1 : 0),
    fence: job.fence + 1,
    lease: { owner, until: now + leaseMs, counted },
    startedAt,
    claimedAt: now,
    deadline: startedAt + maxRunningMs,
  };
  return noted({ ...claimed, dueAt: whenLost(claimed) }, now, owner, nameOfClaim(job));
}

/** The name of a claim in the job's history. */
function nameOfClaim(job: Job): string {
  if (job.state === "queued") return "running";
  return mayHaveBegun(job) ? "asked_again" : "resumed";
}

/** Is it running, and its worker's lease over? */
function isLost(job: Job, leasesOverAt: number): boolean {
  return job.state === "running" && leaseEnd(job) <= leasesOverAt;
}

/**
 * The next state of a job without a worker, before it may be claimed. Where only the lost worker can get the upstream's answer, that
 * worker keeps its fence for a time. A worker that was only cut off from the store can still bring its outputs. After that the job
 * fails, unless it may be requested again. Undefined: it may be, or its answer was not lost and an attempt is left.
 */
function abandoned(job: Job, leasesOverAt: number, now = leasesOverAt): Job | undefined {
  if (job.lease && job.lease.owner !== "" && isAnswerAwaited(job)) {
    const until = Math.min(leaseEnd(job) + lostAnswerMs, job.deadline);
    if (until > leasesOverAt) return noted(leased(job, "", until), now, whyLost, "unanswered");
  }
  const failure = failureOnceLost(job);
  return failure && failing(job, failure, now, wasAnswerLost({ failure }) ? whyLost : undefined);
}

function stepRunning(
  job: Job,
  command: Of<
    "sending" | "resumable" | "hand-back" | "wait" | "pass-on" | "set-aside" | "win" | "lose"
  >,
): Job | undefined {
  switch (command.kind) {
    case "sending":
      return { ...job, sent: true };
    case "resumable":
      return { ...job, resumeId: command.resumeId, wait: undefined };
    case "hand-back": {
      if (!mayBegin(job)) return failing(job, answerLost(), command.now, whyLost);
      const attempts = isAnswerAwaited(job) ? job.attempts : uncounted(job);
      const back = leased({ ...job, attempts }, "", command.now, false);
      return noted(back, command.now, "the worker stopped", "handed_back");
    }
    case "wait":
      return waiting(job, command);
    case "pass-on":
      return passedOn(job, command);
    case "set-aside": {
      const until = Math.min(command.until, job.deadline);
      const tried = triedInVain(job, "unknown");
      const aside = leased({ ...tried, ...atUpstream(job, command) }, "", until, false);
      return noted(aside, command.now, "the upstream's answer is unknown", "handed_back");
    }
    case "win": {
      if (command.now >= (command.deadline ?? job.deadline)) return undefined;
      const { outputs, now } = command;
      return noted({ ...job, state: "settling", outputs, ...between(now) }, now);
    }
    case "lose":
      return failing(job, command.failure, command.now);
  }
}

/** The job with one more failed try, at its present upstream. */
function triedInVain(job: Job, kind: string): Job {
  const tries = [...(job.failedTries ?? []), { lane: upstreamOf(job).name, kind }];
  return { ...job, failedTries: tries.slice(-maxFailedTries) };
}

/** Back in the queue, at another upstream. It is no step of its history: the next claim follows at once. */
function passedOn(job: Job, { upstreamIndex, now }: Of<"pass-on">): Job | undefined {
  // The upstream may have begun it.
  if (job.sent || job.resumeId !== undefined) return undefined;
  return {
    ...job,
    ...{ state: "queued", upstreamIndex, lease: undefined, startedAt: undefined },
    attempts: uncounted(job),
    deadline: job.createdAt + maxQueuedMs,
    dueAt: now + unpublishedMs,
    events: withoutClaim(job.events),
  };
}

/** Back in the queue, to begin from the start. Its half hour counts from the claim after which an upstream takes it. */
function waiting(job: Job, command: Of<"wait">): Job {
  const { refusal, now } = command;
  const times = (job.wait?.times ?? 0) + 1;
  const emptySince = emptySinceOf(job.wait, refusal, now);
  const deadline = job.createdAt + maxQueuedMs;
  // Another upstream gets it at once.
  const until = command.until > now ? Math.min(command.until, now + maxWaitMs) : undefined;
  const back: Job = {
    ...triedInVain(job, refusal),
    ...atUpstream(job, command),
    state: "queued",
    attempts: uncounted(job),
    lease: undefined,
    startedAt: undefined,
    wait: { refusal, times, until, ...(emptySince === undefined ? {} : { emptySince }) },
    deadline,
    dueAt: Math.min(until ?? now + unpublishedMs, deadline),
    events: withoutLastTry(job.events),
  };
  return noted(back, now, `${refusalWords[refusal]}, ${times} in all`, "waiting");
}

/**
 * The time since which the job's upstreams answer only that the operator's account there is empty, or that they refuse the
 * configuration. It includes `refusal` at `now`, and is in ms since the epoch. Undefined: no account is empty, or an upstream may take
 * the job soon.
 */
export function emptySinceOf(
  wait: JobWait | undefined,
  refusal: Refusal,
  now: number,
): number | undefined {
  if (refusal === "denied") return wait?.emptySince;
  // A clock that was set back does not lengthen the time.
  return refusal === "account_empty" ? Math.min(wait?.emptySince ?? now, now) : undefined;
}

function atUpstream({ upstreamIndex, spec }: Job, { nextUpstream, sent }: GivenBack) {
  const next = upstreamIndex + (nextUpstream ? 1 : 0);
  return { upstreamIndex: next % spec.upstreams.length, sent };
}

/** The attempts without the present one. */
function uncounted({ attempts, lease }: Job): number {
  return attempts - (lease?.counted ? 1 : 0);
}

/** Is its time over, and does no worker have it? */
export function isOverdue(job: Job, now: number): boolean {
  return now >= job.deadline && !isHeld(job, now);
}

function expire(job: Job, now: number): Job | undefined {
  const reason =
    job.state === "queued"
      ? ErrorReason.JOB_EXPIRED
      : job.state === "running"
        ? ErrorReason.UPSTREAM_TIMEOUT
        : undefined;
  return reason && failing(job, failureFor(reason), now);
}

function cancel(job: Job, now: number): Job | undefined {
  if (job.state !== "queued" && job.state !== "running") return undefined;
  return failing(job, failureFor(ErrorReason.JOB_CANCELLED), now);
}

function failing(job: Job, failure: JobFailure, now: number, why?: string): Job {
  const next = { ...job, state: "failing", failure, ...between(now) } as const;
  return noted(next, now, [reasonName(failure.reason), why].filter(Boolean).join(": "));
}

/** A job between two steps has no worker, and any process may drive it on. */
function between(now: number) {
  return { lease: undefined, dueAt: now + stepDueMs };
}

function end(job: Job, state: "completed" | "failed", command: Of<"complete" | "fail">): Job {
  const { now, charged, expiresAt } = command;
  const spec = mayBeRepeated({ ...job, state }) ? job.spec : withoutText(job.spec);
  const ended = { ...job, spec, state, charged, expiresAt, completedAt: now } as const;
  return noted({ ...ended, dueAt: job.pinsHeld ? now : expiresAt }, now);
}

/** For a job's history: the reason why it was not claimed at once, or not requested again. */
const whyLost = "upstream may have begun it";
