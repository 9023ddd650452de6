import { ErrorReason, errorRow, reasonName } from "#kit/errors.ts";
import type { Refusal } from "../generate/port.ts";
import {
  leaseMs,
  maxAttempts,
  maxQueuedMs,
  maxRepublishMs,
  maxRunningMs,
  maxWaitMs,
  rejectedKeptMs,
  republishMs,
  stepDueMs,
  unpublishedMs,
} from "../limits.ts";
import type { PinnedReference } from "../references/port.ts";
import { noted, refusalWords, withoutLastTry } from "./history.ts";
import {
  isParked,
  type Job,
  type JobFailure,
  type JobOutput,
  mayBegin,
  type NewJob,
} from "./job.ts";
import { withoutWords } from "./words.ts";

/** Everything that can happen to a job. `now` is ms since the epoch; `fence` is that of the worker's claim. */
export type JobCommand =
  /** `reserving`: its submission still lives. */
  | { kind: "beat"; now: number }
  /** `reserving`: its references are in the account's storage. */
  | { kind: "attach"; pinned: readonly PinnedReference[]; now: number }
  /** `reserving → queued`: its hold stands. */
  | { kind: "accept"; now: number }
  /** `reserving → rejected`: the idempotency key is free again. */
  | { kind: "reject"; failure: JobFailure; now: number }
  /** `queued` or `running`: a wake-up was published. */
  | { kind: "published"; now: number }
  /**
   * `queued → running`, or a `running` job whose lease is over to a new worker; a job that may have no further attempt, or
   * whose time is over, becomes `failing` instead.
   */
  | { kind: "claim"; owner: string; now: number; leasesOverAt?: number | undefined }
  /** The worker lives. `deadline`: when the job's time is over, by the clock as it is set now; default as before. */
  | { kind: "heartbeat"; fence: number; now: number; deadline?: number }
  /** A request that begins the generation is about to be sent to the upstream. */
  | { kind: "sending"; fence: number }
  /** The upstream has named its task: whoever has the job next takes that up. */
  | { kind: "resumable"; fence: number; resumeId: string }
  | { kind: "progress"; fence: number; percent: number }
  /** The worker stops for reasons of its own: its attempt does not count. */
  | { kind: "hand-back"; fence: number; now: number }
  /**
   * `running → queued`: the upstream would not take the job, which costs no attempt. Offered again at `until`, at the next
   * upstream where that is asked for. `sent`: an earlier request may have reached it all the same.
   */
  | ({ kind: "wait"; refusal: Refusal } & GivenBack)
  /** `queued`: the time of its wait is over. */
  | { kind: "offer"; now: number }
  /** The upstream's answer is unknown, or nothing came of it: claimable again at `until`. */
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
  /** `queued | running → failing`, where its time is over. */
  | { kind: "expire"; now: number }
  /** `settling → completed`: so much was charged. */
  | { kind: "complete"; charged: bigint; expiresAt: number | undefined; now: number }
  /** `failing → failed`: released (`charged` is 0 unless an operator ended the hold otherwise). */
  | { kind: "fail"; charged: bigint; expiresAt: number | undefined; now: number }
  /** Terminal or `rejected`: its references were let go of. */
  | { kind: "unpinned" }
  /** `completed`: its outputs are needed until then. */
  | { kind: "keep"; until: number; now: number }
  /** The sweeper looks again then. */
  | { kind: "defer"; until: number };

/** How a job goes back to whichever worker claims it next. */
interface GivenBack {
  fence: number;
  until: number;
  nextUpstream: boolean;
  sent: boolean;
  now: number;
}

/** A submission, written down before anything is held. */
export function newJob(job: NewJob, now: number): Job {
  return {
    ...job,
    createdAt: now,
    state: "reserving",
    pinned: job.spec.references.length === 0 ? [] : undefined,
    pinsHeld: job.spec.references.length > 0,
    attempts: 0,
    fence: 0,
    lease: undefined,
    upstreamIndex: 0,
    resumeId: undefined,
    sent: false,
    wait: undefined,
    progress: 0,
    outputs: [],
    failure: undefined,
    charged: undefined,
    publications: 0,
    dueAt: now + stepDueMs,
    deadline: now + maxQueuedMs,
    startedAt: undefined,
    claimedAt: undefined,
    completedAt: undefined,
    expiresAt: undefined,
    events: [{ at: now, name: "reserving", detail: "" }],
  };
}

/** The job after a command; undefined where its state does not allow that. Changes nothing that it is given. */
export function step(job: Job, command: JobCommand): Job | undefined {
  switch (command.kind) {
    case "beat":
    case "attach":
    case "accept":
    case "reject":
      return job.state === "reserving" ? stepReserving(job, command) : undefined;
    case "published":
      return published(job, command.now);
    case "claim":
      return claim(job, command);
    case "offer":
      return offer(job, command.now);
    case "heartbeat":
    case "sending":
    case "resumable":
    case "progress":
    case "hand-back":
    case "wait":
    case "set-aside":
    case "win":
    case "lose":
      return isWorkers(job, command.fence) ? stepRunning(job, command) : undefined;
    case "expire":
      return command.now < job.deadline ? undefined : expire(job, command.now);
    case "complete":
      return job.state === "settling" ? end(job, "completed", command) : undefined;
    case "fail":
      return job.state === "failing" ? end(job, "failed", command) : undefined;
    case "unpinned":
      return unpinned(job);
    case "keep":
      return kept(job, command);
    case "defer":
      return { ...job, dueAt: command.until };
  }
}

type Of<K extends JobCommand["kind"]> = Extract<JobCommand, { kind: K }>;

function stepReserving(job: Job, command: Of<"beat" | "attach" | "accept" | "reject">): Job {
  const { now } = command;
  switch (command.kind) {
    case "beat":
      return { ...job, dueAt: now + stepDueMs };
    case "attach":
      return {
        ...job,
        // URLs may carry a signature, and the files are named in their place.
        spec: { ...job.spec, references: [] },
        pinned: job.pinned ?? command.pinned,
        dueAt: now + stepDueMs,
      };
    case "accept":
      return noted(
        { ...job, state: "queued", dueAt: now + unpublishedMs, deadline: now + maxQueuedMs },
        now,
      );
    case "reject": {
      const { failure } = command;
      const spec = withoutWords(job.spec);
      const rejected = { ...job, spec, state: "rejected", slot: undefined, failure } as const;
      return noted({ ...rejected, dueAt: now + rejectedKeptMs }, now, reasonName(failure.reason));
    }
  }
}

function published(job: Job, now: number): Job | undefined {
  if (job.state !== "queued" && job.state !== "running") return undefined;
  // A wake-up of before it was turned away: nobody is to be woken for it now.
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

/** A queued job that waits may be claimed again, once its time has come. */
function offer(job: Job, now: number): Job | undefined {
  const { wait } = job;
  if (!isParked(job) || !wait) return undefined;
  const leftMs = (wait.until ?? 0) - now;
  // What is longer than any wait was written by a clock that was ahead.
  if (leftMs > 0 && leftMs <= maxWaitMs) return undefined;
  return { ...job, wait: { ...wait, until: undefined }, dueAt: now + unpublishedMs };
}

function claim(job: Job, { owner, now, leasesOverAt = now }: Of<"claim">): Job | undefined {
  const isLost = job.state === "running" && leaseEnd(job) <= leasesOverAt;
  if (job.state !== "queued" && !isLost) return undefined;
  if (isParked(job)) return undefined;
  if (leasesOverAt >= job.deadline) return expire(job, now);
  const counted = job.resumeId === undefined;
  const isSpent = counted && job.attempts >= maxAttempts;
  if (isSpent) return failing(job, generationFailed(), now);
  if (!mayBegin(job)) return failing(job, generationFailed(), now, "upstream may have begun it");
  // Never later than now: a clock that was ahead would have given it more time than there is.
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
  const name = job.state === "queued" ? "running" : "resumed";
  return noted({ ...claimed, dueAt: whenLost(claimed) }, now, owner, name);
}

function stepRunning(
  job: Job,
  command: Of<
    | "heartbeat"
    | "sending"
    | "resumable"
    | "progress"
    | "hand-back"
    | "wait"
    | "set-aside"
    | "win"
    | "lose"
  >,
): Job | undefined {
  switch (command.kind) {
    case "heartbeat":
      return leased(
        { ...job, deadline: command.deadline ?? job.deadline },
        command.now + leaseMs,
        job.lease?.counted ?? false,
      );
    case "sending":
      return { ...job, sent: true };
    case "resumable":
      return { ...job, resumeId: command.resumeId, wait: undefined };
    case "progress": {
      const percent = Math.min(Math.max(Math.floor(command.percent), 0), 99);
      return percent > job.progress ? { ...job, progress: percent } : undefined;
    }
    case "hand-back": {
      const back = leased({ ...job, attempts: uncounted(job) }, command.now, false);
      return noted(back, command.now, "the worker stopped", "handed_back");
    }
    case "wait":
      return waiting(job, command);
    case "set-aside": {
      const aside = leased({ ...job, ...atUpstream(job, command) }, command.until, false);
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

/** Back in the queue, and to be begun anew: its half hour counts from the claim after which an upstream takes it. */
function waiting(job: Job, command: Of<"wait">): Job {
  const { refusal, now } = command;
  const times = (job.wait?.times ?? 0) + 1;
  const deadline = job.createdAt + maxQueuedMs;
  // Another upstream gets it at once.
  const until = command.until > now ? Math.min(command.until, now + maxWaitMs) : undefined;
  const back: Job = {
    ...job,
    ...atUpstream(job, command),
    state: "queued",
    attempts: uncounted(job),
    lease: undefined,
    startedAt: undefined,
    wait: { refusal, times, until },
    deadline,
    dueAt: Math.min(until ?? now + unpublishedMs, deadline),
    events: withoutLastTry(job.events),
  };
  return noted(back, now, `${refusalWords[refusal]}, ${times} in all`, "waiting");
}

function atUpstream({ upstreamIndex, spec }: Job, { nextUpstream, sent }: GivenBack) {
  const next = upstreamIndex + (nextUpstream ? 1 : 0);
  return { upstreamIndex: next % spec.upstreams.length, sent };
}

/** The attempts without the present one. */
function uncounted({ attempts, lease }: Job): number {
  return attempts - (lease?.counted ? 1 : 0);
}

function isWorkers(job: Job, fence: number): boolean {
  return job.state === "running" && job.fence === fence;
}

function expire(job: Job, now: number): Job | undefined {
  const reason =
    job.state === "queued"
      ? ErrorReason.JOB_EXPIRED
      : job.state === "running"
        ? ErrorReason.UPSTREAM_TIMEOUT
        : undefined;
  if (reason === undefined) return undefined;
  return failing(job, { reason, message: errorRow(reason).message, param: undefined }, now);
}

function failing(job: Job, failure: JobFailure, now: number, why?: string): Job {
  const next = { ...job, state: "failing", failure, ...between(now) } as const;
  return noted(next, now, [reasonName(failure.reason), why].filter(Boolean).join(": "));
}

/** A job between two steps has no worker, and is taken up by anybody who is there. */
function between(now: number) {
  return { lease: undefined, dueAt: now + stepDueMs };
}

function end(job: Job, state: "completed" | "failed", command: Of<"complete" | "fail">): Job {
  const { now, charged, expiresAt } = command;
  // A failed job's request may be repeated by an operator.
  const spec = state === "completed" ? withoutWords(job.spec) : job.spec;
  const ended = { ...job, spec, state, charged, expiresAt, completedAt: now } as const;
  return noted({ ...ended, dueAt: job.pinsHeld ? now : expiresAt }, now);
}

function kept(job: Job, { until, now }: Of<"keep">): Job | undefined {
  const { state, expiresAt, pinsHeld, dueAt } = job;
  if (state !== "completed") return undefined;
  if (expiresAt === undefined || expiresAt >= until) return job;
  if (expiresAt <= now) return undefined;
  return { ...job, expiresAt: until, dueAt: pinsHeld ? dueAt : until };
}

function unpinned(job: Job): Job | undefined {
  const isOver = job.state === "completed" || job.state === "failed" || job.state === "rejected";
  if (!isOver) return undefined;
  const dueAt = job.state === "rejected" ? job.dueAt : job.expiresAt;
  return { ...job, pinsHeld: false, dueAt };
}

function leased(job: Job, until: number, counted: boolean): Job {
  const lease = { owner: job.lease?.owner ?? "", until, counted };
  return { ...job, lease, dueAt: whenLost({ ...job, lease }) };
}

function leaseEnd({ lease }: Job): number {
  return lease?.until ?? 0;
}

/** When a running job that nobody was heard of again is looked at. */
function whenLost(job: Job): number {
  return Math.min(leaseEnd(job) + unpublishedMs, job.deadline);
}

function generationFailed(): JobFailure {
  const reason = ErrorReason.GENERATION_FAILED;
  return { reason, message: errorRow(reason).message, param: undefined };
}
