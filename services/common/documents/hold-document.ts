// Shows open holds, and requests in review because of the usage that was reported, to operators: in the console and by the
// command.

import type { Hold } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { Review } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { holdKindName, isoTime, isoTimeOrNull, jsonOrText, unitName } from "./answer-values.ts";

/** An open hold as operators see it in the console. */
export function holdDocument(hold: Hold) {
  return {
    object: "hold",
    id: hold.holdId,
    accountId: hold.accountId,
    unit: unitName(hold.unit),
    amount: hold.amount,
    kind: holdKindName(hold.kind),
    keyId: hold.keyId,
    ref: hold.ref,
    openedAt: isoTimeOrNull(hold.openTime),
    checkAt: isoTimeOrNull(hold.checkTime),
  };
}

/** An open hold as the command prints it for scripts, with the usage that its request is in review for. */
export function printedHold(hold: Hold, review: string | undefined) {
  return {
    holdId: hold.holdId,
    accountId: hold.accountId,
    owner: holdKindName(hold.kind),
    ref: hold.ref,
    amount: hold.amount,
    unit: unitName(hold.unit),
    openedAt: isoTime(hold.openTime),
    review,
  };
}

/** Usage that was reported beyond belief, as operators see it in the console. */
export function reviewDocument(review: Review) {
  return {
    object: "review",
    requestId: review.requestId,
    accountId: review.accountId,
    holdId: review.holdId,
    model: review.model,
    reportedUsage: jsonOrText(review.reportedUsage),
    reviewedAt: isoTimeOrNull(review.reviewTime),
    chargedUsdMicros: review.chargedUsdMicros ?? null,
  };
}

/** The same as the command prints it for scripts. */
export function printedReview(review: Review) {
  return {
    holdId: review.holdId,
    accountId: review.accountId,
    model: review.model,
    reported: review.reportedUsage,
    chargedUsdMicros: review.chargedUsdMicros ?? 0n,
    at: isoTime(review.reviewTime),
  };
}
