// Decides about jobs whose upstream may have begun the work, while its answer was lost: request it again, wait, or fail. A second
// request may cost the operator twice.

import { ErrorReason } from "#kit/base/errors.ts";
import { LostAnswer } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { isRepeatable } from "../../upstreams/protocols.ts";
import { maxAttempts } from "../limits.ts";
import { failureFor, type Job, type JobFailure, upstreamOf } from "./job.ts";

/** The parts of a job that show its state at its upstream. */
type AtUpstream = Pick<Job, "spec" | "upstreamIndex" | "sent" | "resumeId">;

/** Was its upstream sent a request that may have begun a generation, without any answer so far? */
export function mayHaveBegun(job: AtUpstream): boolean {
  return job.sent && job.resumeId === undefined;
}

/**
 * May a generation be requested (again) at the job's upstream? Where that may have begun one, `lostAnswer` of the catalog decides.
 * Without it, images are requested again, and so is any generation whose repeat is not paid for twice.
 */
export function mayBegin(job: AtUpstream): boolean {
  if (!mayHaveBegun(job)) return true;
  const { lostAnswer } = upstreamOf(job);
  if (lostAnswer === LostAnswer.AGAIN || lostAnswer === LostAnswer.FAIL) {
    return lostAnswer === LostAnswer.AGAIN;
  }
  return job.spec.kind === "image" || isRepeatable(upstreamOf(job), job.spec.kind);
}

/** May its upstream have begun a generation that a second request would not resume, but start and pay once more? */
export function isAnswerAwaited(job: AtUpstream): boolean {
  if (!mayHaveBegun(job)) return false;
  return !(mayBegin(job) && isRepeatable(upstreamOf(job), job.spec.kind));
}

const answerLostMessage =
  "The model's answer was lost before it could be stored. Nothing was charged.";

/** The failure of a job whose upstream has, or may have, done the work for an answer that was lost. */
export function answerLost(): JobFailure {
  return { reason: ErrorReason.GENERATION_FAILED, message: answerLostMessage, param: undefined };
}

/**
 * The failure of a job that ends with its lost worker or its unknown answer. Its upstream is not asked again, or it has no attempt
 * left. Undefined: it may have another attempt.
 */
export function failureOnceLost(job: AtUpstream & Pick<Job, "attempts">): JobFailure | undefined {
  const isSpent = job.resumeId === undefined && job.attempts >= maxAttempts;
  if (!mayBegin(job) || (isSpent && isAnswerAwaited(job))) return answerLost();
  return isSpent ? failureFor(ErrorReason.GENERATION_FAILED) : undefined;
}

/** Did a job fail because its answer was lost? */
export function wasAnswerLost({ failure }: Pick<Job, "failure">): boolean {
  return failure?.message === answerLostMessage;
}
