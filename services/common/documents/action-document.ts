// Shows a line of the audit log to operators, in the console and by the command. words/operator-actions.ts writes the lines.

import { ActionOutcome, type OperatorAction } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { isoTime, isoTimeOrNull, jsonOrText } from "./answer-values.ts";

const outcomes = new Map<number, string>([
  [ActionOutcome.DONE, "done"],
  [ActionOutcome.REFUSED, "refused"],
]);

/** The outcome of an action. An action without an end: its process ended in between, or its answer was lost. */
function outcomeOf({ outcome }: OperatorAction): string {
  return outcomes.get(outcome) ?? "started";
}

/** A line of the audit log as operators see it in the console. */
export function actionDocument(action: OperatorAction) {
  return {
    object: "audit.record",
    id: action.actionId,
    actor: action.actor,
    action: action.action,
    accountId: action.accountId || null,
    target: action.target || null,
    details: jsonOrText(action.details),
    outcome: outcomeOf(action),
    reason: action.reason || null,
    createdAt: isoTimeOrNull(action.beginTime),
    endedAt: isoTimeOrNull(action.endTime),
  };
}

/** A line of the audit log as the command prints it for scripts. */
export function printedAction(action: OperatorAction) {
  return {
    at: isoTime(action.beginTime),
    actor: action.actor,
    action: action.action,
    accountId: action.accountId,
    target: action.target,
    details: action.details,
    outcome: outcomeOf(action),
    reason: action.reason,
  };
}
