import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type HoldVerdict, HoldVerdictSchema } from "#proto/genmesh/common/v1/hold_verdict_pb.ts";
import { keepReservingMs } from "../limits.ts";
import type { Job } from "./job.ts";

/**
 * What is to become of a job's hold, when billing asks. `job` is read from where no write rolls back; undefined where there
 * is none of that id in that account: its intent would stand there before any hold.
 */
export function holdVerdict(job: Job | undefined, now: number): HoldVerdict {
  const verdict = verdictOf(job, now);
  return create(HoldVerdictSchema, { verdict });
}

function verdictOf(job: Job | undefined, now: number): HoldVerdict["verdict"] {
  switch (job?.state) {
    case "reserving":
      return keepUntil(now + keepReservingMs);
    case "queued":
    case "running":
      // It ends by then, and whoever ends it ends the hold.
      return keepUntil(Math.max(now + keepReservingMs, job.deadline));
    case "settling":
    case "completed":
      return { case: "settleAmount", value: job.spec.price };
    case undefined:
    case "rejected":
    case "failing":
    case "failed":
      return { case: "release", value: true };
  }
}

function keepUntil(ms: number): HoldVerdict["verdict"] {
  return { case: "keepUntil", value: timestampFromMs(ms) };
}
