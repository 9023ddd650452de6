import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Clock } from "#kit/clock.ts";
import { ErrorReason, isRefusal } from "#kit/errors.ts";
import type { HoldClient, RequestRecord } from "#kit/holds.ts";
import { HoldKind, HoldState, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { type HoldVerdict, HoldVerdictSchema } from "#proto/genmesh/common/v1/hold_verdict_pb.ts";
import type { JobEvents } from "../events.ts";
import type { FailPoints } from "../fail-points.ts";
import { holdCheckMs, keepReservingMs, maxFailedJobs, retiredAtOnce } from "../limits.ts";
import { type CancelUpstreamContext, cancelAtUpstream } from "./cancel-upstream.ts";
import { earnedOf, type Job, owedOf, wasCancelled } from "./job.ts";
import type { JobStore, SurplusQuery } from "./store.ts";

/** The money of jobs: one hold a job, named after it. Every operation may be repeated. */
export interface JobHolds {
  /**
   * Holds the job's price; "closed" where the hold was ended before (by an operator). Refuses with INSUFFICIENT_CREDITS
   * and the like, and with SERVICE_UNAVAILABLE where the outcome is unknown.
   */
  reserve(job: Job): Promise<"open" | "closed">;
  /**
   * Charges what a job owes that has won or lost, lets the rest go, and answers what was charged: another amount only where an
   * operator ended the hold before. `now` is in ms since the epoch.
   */
  end(job: Job, now: number): Promise<bigint>;
  /** Lets the price of a job go that was never accepted. */
  release(job: Pick<Job, "jobId" | "accountId">): Promise<void>;
}

/** Makes them over a client of billing. */
export function createJobHolds(client: HoldClient): JobHolds {
  return {
    async reserve(job) {
      const { state } = await client.reserve({
        ...refOf(job),
        amount: job.spec.price,
        kind: HoldKind.JOB,
        keyId: job.keyId,
        ref: job.jobId,
        // Part of the operation's content, so it is made of what the job has written down.
        checkTimeMs: job.createdAt + holdCheckMs,
      });
      return state === HoldState.OPEN ? "open" : "closed";
    },
    async end(job, now) {
      const hold = { ...refOf(job), record: recordOf(job, now) };
      const amount = hasWon(job) ? earnedOf(job) : owedOf(job);
      if (hasWon(job) || amount > 0n)
        return (await client.settle({ ...hold, amount })).chargedAmount;
      return (await ifOpened(client.release(hold)))?.chargedAmount ?? 0n;
    },
    async release(job) {
      await ifOpened(client.release(refOf(job)));
    },
  };
}

/** Undefined where the hold was never opened. */
async function ifOpened<T>(ending: Promise<T>): Promise<T | undefined> {
  try {
    return await ending;
  } catch (error) {
    if (isRefusal(error, ErrorReason.HOLD_NOT_FOUND)) return undefined;
    throw error;
  }
}

function hasWon({ state }: Pick<Job, "state">): boolean {
  return state === "settling" || state === "completed";
}

/** What the journal keeps of a job: nothing that its caller wrote. */
function recordOf(job: Job, now: number): RequestRecord {
  const { spec, outputs, createdAt } = job;
  const made = hasWon(job) ? outputs : [];
  const seconds = made.reduce((sum, { durationSeconds }) => sum + durationSeconds, 0);
  return {
    model: spec.model,
    operation: spec.kind,
    status: hasWon(job) ? "completed" : wasCancelled(job) ? "cancelled" : "failed",
    images: spec.kind === "image" ? BigInt(made.length) : 0n,
    mediaMs: BigInt(Math.round(seconds * 1_000)),
    requestId: spec.requestId ?? "",
    startTime: timestampFromMs(createdAt),
    endTime: timestampFromMs(job.completedAt ?? now),
  };
}

function refOf({ accountId, jobId }: Pick<Job, "jobId" | "accountId">) {
  return { accountId, unit: Unit.CREDITS, holdId: jobId };
}

/** What ending a job needs. */
export interface FinishContext extends CancelUpstreamContext {
  clock: Clock;
  store: JobStore;
  holds: JobHolds;
  events: JobEvents;
  failPoints: FailPoints;
  /** Ms for which terminal jobs are kept; 0: for ever. */
  retentionMs: number;
}

/** Drives a `settling` or `failing` job to its end; any process may, at any time, also several at once. */
export async function finish(job: Job, context: FinishContext): Promise<void> {
  if (job.state === "settling") await complete(job, context);
  else if (job.state === "failing") await fail(job, context);
}

/** Charged first, completed second: so a completed job is always paid for. */
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
    // Before it is terminal: where this process dies, the next one tells the upstream again.
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

/** Ends the time of an account's oldest jobs in a state that are more than it may have. What fails is left to the next one. */
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

/**
 * Ends the hold of a job that has ended, with its record; what fails is left to billing, which ends it with the verdict.
 */
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
 * What is to become of a job's hold, when billing asks. `job` is read from where no write rolls back; undefined where there
 * is none of that id in that account: its intent would stand there before any hold.
 */
export function holdVerdict(job: Job | undefined, now: number): HoldVerdict {
  const verdict = verdictOf(job, now);
  return create(HoldVerdictSchema, { verdict });
}

const release: HoldVerdict["verdict"] = { case: "release", value: true };

function verdictOf(job: Job | undefined, now: number): HoldVerdict["verdict"] {
  switch (job?.state) {
    case "reserving":
      return keepUntil(now + keepReservingMs);
    case "queued":
    case "running":
      // The job ends by then, and its end ends the hold.
      return keepUntil(Math.max(now + keepReservingMs, job.deadline));
    case "settling":
    case "completed":
      return { case: "settleAmount", value: earnedOf(job) };
    case "failing":
    case "failed":
      return owedOf(job) > 0n ? { case: "settleAmount", value: owedOf(job) } : release;
    case "deleted":
      return job.charged ? { case: "settleAmount", value: job.charged } : release;
    case undefined:
    case "rejected":
      return release;
  }
}

function keepUntil(ms: number): HoldVerdict["verdict"] {
  return { case: "keepUntil", value: timestampFromMs(ms) };
}
