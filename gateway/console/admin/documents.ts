import { holdKindName, isoTimeOrNull, unitName } from "#common/documents/answer-values.ts";
import { ActionOutcome, type OperatorAction } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import type { Hold } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { Review } from "#proto/genmesh/text/v1/text_service_pb.ts";

// What operators are shown: ids, figures and names that operators gave. Never a prompt, an answer or a preview.

/** An open hold. */
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

/** Usage that was reported beyond belief. */
export function reviewDocument(review: Review) {
  return {
    object: "review",
    requestId: review.requestId,
    accountId: review.accountId,
    holdId: review.holdId,
    model: review.model,
    reportedUsage: parsed(review.reportedUsage),
    reviewedAt: isoTimeOrNull(review.reviewTime),
    chargedUsdMicros: review.chargedUsdMicros ?? null,
  };
}

const outcomes = new Map<number, string>([
  [ActionOutcome.DONE, "done"],
  [ActionOutcome.REFUSED, "refused"],
]);

/** A line of the audit log. */
export function actionDocument(action: OperatorAction) {
  return {
    object: "audit.record",
    id: action.actionId,
    actor: action.actor,
    action: action.action,
    accountId: action.accountId || null,
    target: action.target || null,
    details: parsed(action.details),
    outcome: outcomes.get(action.outcome) ?? "started",
    reason: action.reason || null,
    createdAt: isoTimeOrNull(action.beginTime),
    endedAt: isoTimeOrNull(action.endTime),
  };
}

/** JSON that a service wrote; the text where it is none. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
