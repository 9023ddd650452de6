import { ErrorReason, isRefusal } from "#kit/errors.ts";
import type { HoldClient } from "#kit/holds.ts";
import { HoldKind, HoldState, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { holdCheckMs } from "../limits.ts";
import type { Job } from "./job.ts";

/** The money of jobs: one hold a job, named after it. Every operation may be repeated. */
export interface JobHolds {
  /**
   * Holds the job's price; "closed" where the hold was ended before (by an operator). Refuses with INSUFFICIENT_CREDITS
   * and the like, and with SERVICE_UNAVAILABLE where the outcome is unknown.
   */
  reserve(job: Job): Promise<"open" | "closed">;
  /** Charges the price, and answers what was charged: less only where an operator ended the hold before. */
  settle(job: Job): Promise<bigint>;
  /** Lets the price go, and answers what was charged: 0 but where an operator ended the hold before. */
  release(job: Pick<Job, "jobId" | "accountId">): Promise<bigint>;
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
    settle: async (job) =>
      (await client.settle({ ...refOf(job), amount: job.spec.price })).chargedAmount,
    async release(job) {
      try {
        return (await client.release(refOf(job))).chargedAmount;
      } catch (error) {
        // It was never opened.
        if (isRefusal(error, ErrorReason.HOLD_NOT_FOUND)) return 0n;
        throw error;
      }
    },
  };
}

function refOf({ accountId, jobId }: Pick<Job, "jobId" | "accountId">) {
  return { accountId, unit: Unit.CREDITS, holdId: jobId };
}
