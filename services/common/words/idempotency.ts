// Decides when a request that carries an Idempotency-Key is refused: for the key itself, and late for what the edge found. The
// services call it, because only they know whether an answer was recorded.

import { ErrorReason, knownReason, refuse } from "#kit/base/errors.ts";
import type { Admission } from "#proto/genmesh/common/v1/access_pb.ts";
import { codePoints } from "./body.ts";

/** Most characters of an Idempotency-Key, by the API's contract. */
export const maxIdempotencyKeyLength = 255;

/** Checks a caller's Idempotency-Key. An absent one stays absent. Refuses with INVALID_IDEMPOTENCY_KEY. */
export function checkIdempotencyKey(key: string | undefined): string | undefined {
  if (key === undefined) return undefined;
  if (key === "" || codePoints(key, maxIdempotencyKeyLength) > maxIdempotencyKeyLength) {
    refuse(ErrorReason.INVALID_IDEMPOTENCY_KEY, { param: "Idempotency-Key" });
  }
  return key;
}

/**
 * Refuses a request that the edge would have refused (scope, rate) without its idempotency key. Call this once no recorded answer was
 * found. A reason of a newer edge that this build does not know refuses as well.
 */
export function refuseAtEdge(admission: Admission | undefined): void {
  if (!admission?.refuseWith) return;
  const reason = knownReason(admission.refuseWith) ?? ErrorReason.PERMISSION_DENIED;
  const message = admission.refusalMessage;
  refuse(reason, message ? { message } : {});
}
