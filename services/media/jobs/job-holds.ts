// Holds, charges and releases a job's price in billing, with one hold for each job. It also answers billing when that asks what
// became of a hold.

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HoldClient, RequestRecord } from "#common/agreements/hold-client.ts";
import { ErrorReason, errorRow, isRefusal } from "#kit/base/errors.ts";
import { HoldKind, HoldState, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { type HoldVerdict, HoldVerdictSchema } from "#proto/genmesh/common/v1/hold_verdict_pb.ts";
import { holdCheckMs, keepReservingMs } from "../limits.ts";
import { earnedOf, type Job, owedOf, upstreamOf, wasCancelled } from "./job.ts";

/** The money of jobs: one hold a job, named after it. Every operation may be repeated. */
export interface JobHolds {
  /**
   * Holds the job's price. "closed" where the hold was ended before (by an operator). Refuses with INSUFFICIENT_CREDITS and similar
   * reasons, and with SERVICE_UNAVAILABLE where the outcome is unknown.
   */
  reserve(job: Job): Promise<"open" | "closed">;
  /**
   * Charges what a job that has won or lost owes, and releases the rest. Answers what was charged. That is another amount only where an
   * operator ended the hold before. `now` is in ms since the epoch.
   */
  end(job: Job, now: number): Promise<bigint>;
  /** Releases the price of a job that was never accepted. */
  release(job: Pick<Job, "jobId" | "accountId">): Promise<void>;
}

/** Makes job holds over a client of billing. */
export function createJobHolds(client: HoldClient): JobHolds {
  return {
    async reserve(job) {
      const { state } = await client.reserve({
        ...refOf(job),
        amount: job.spec.price,
        kind: HoldKind.JOB,
        keyId: job.keyId,
        ref: job.jobId,
        // Part of the operation's content, so it is made only of stored values of the job.
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

/** Did it get its outputs, so that it is charged for them? */
export function hasWon({ state }: Pick<Job, "state">): boolean {
  return state === "settling" || state === "completed";
}

/** The journal's record of a job, without any text of its caller. */
function recordOf(job: Job, now: number): RequestRecord {
  const { spec, outputs, createdAt, failure } = job;
  const made = hasWon(job) ? outputs : [];
  const seconds = made.reduce((sum, { durationSeconds }) => sum + durationSeconds, 0);
  return {
    model: spec.model,
    operation: spec.kind,
    upstream: hasWon(job) ? upstreamOf(job).name : "",
    failedTries: job.failedTries,
    status: hasWon(job) ? "completed" : wasCancelled(job) ? "cancelled" : "failed",
    images: spec.kind === "image" ? made.length : 0,
    mediaMs: Math.round(seconds * 1_000),
    requestId: spec.requestId,
    failure: failure && !hasWon(job) ? { code: errorRow(failure.reason).code } : undefined,
    startMs: createdAt,
    endMs: job.completedAt ?? now,
  };
}

function refOf({ accountId, jobId }: Pick<Job, "jobId" | "accountId">) {
  return { accountId, unit: Unit.CREDITS, holdId: jobId };
}

/**
 * The verdict on a job's hold, when billing asks. `job` comes from a read that no rollback can undo. Undefined where that account has
 * no job of that id: a job is written down before any hold.
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
