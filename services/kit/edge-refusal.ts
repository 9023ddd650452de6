import type { Admission } from "#proto/genmesh/common/v1/access_pb.ts";
import { ErrorReason, knownReason, refuse } from "./errors.ts";

/**
 * Refuses what the edge would have refused (scope, rate), had the request brought no idempotency key: to be called once it is
 * known that no recorded answer comes before. A reason that this build does not know, of a newer edge, refuses as well.
 */
export function refuseAtEdge(admission: Admission | undefined): void {
  if (!admission?.refuseWith) return;
  const reason = knownReason(admission.refuseWith) ?? ErrorReason.PERMISSION_DENIED;
  const message = admission.refusalMessage;
  refuse(reason, message ? { message } : {});
}
