import { createHash } from "node:crypto";
import { ErrorReason, refuse } from "#kit/errors.ts";
import { maxOperationIdLength } from "../limits.ts";
import { bodyOf } from "../requests/again.ts";
import { checkRequest, readReferences } from "../requests/index.ts";
import type { Job } from "./job.ts";
import { place, type SubmitContext } from "./submit.ts";

/** No caller's idempotency key has this scope: it holds no key id. */
const retryScope = "operator/retry";

/**
 * The request of a failed job as a new job of the same key, validated and held anew; the same operation id makes one.
 * Refuses with JOB_NOT_FOUND, OPERATION_CONFLICT where the job has not failed, OPERATION_MISMATCH where the operation id
 * was used for another job, and as a submission does.
 */
export async function retryJob(
  jobId: string,
  operationId: string,
  context: SubmitContext,
): Promise<Job> {
  if (operationId.length > maxOperationIdLength) {
    refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field: "operation_id" } });
  }
  const source = await context.store.find(jobId);
  if (!source || source.state === "rejected") refuse(ErrorReason.JOB_NOT_FOUND);
  const { accountId, keyId, spec } = source;
  const body = bodyOf(source);
  const { job } = await place(
    {
      accountId,
      keyId,
      slot: operationId === "" ? undefined : { scope: retryScope, key: operationId },
      fingerprint: createHash("sha256").update(jobId).digest("hex"),
      retryOf: jobId,
      onOther: () => refuse(ErrorReason.OPERATION_MISMATCH),
      inputs: () => (spec.kind === "music" ? [] : readReferences(body)),
      check: () => {
        if (source.state !== "failed") refuse(ErrorReason.OPERATION_CONFLICT);
        return checkRequest(spec.kind, body, context.catalog.current(), {});
      },
    },
    context,
  );
  return job;
}
