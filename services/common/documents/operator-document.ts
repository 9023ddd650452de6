// Shows an operator who signs in by name to other operators, in the console and by the command.

import type { Operator } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { isoTimeOrNull } from "./answer-values.ts";

/** An operator who signs in by name, as other operators see it in the console and by the command. */
export function operatorDocument(operator: Operator) {
  return {
    object: "operator",
    name: operator.name,
    state: stateOf(operator),
    recoveryCodes: operator.recoveryCodes,
    createdAt: isoTimeOrNull(operator.createTime),
    signedInAt: isoTimeOrNull(operator.signInTime),
    linkEndsAt: isoTimeOrNull(operator.setUpEndTime),
    codesRefusedUntil: isoTimeOrNull(operator.codesRefusedUntil),
  };
}

/** The state of an operator in a word. One that is pending lacks a password or a second factor, and sets it up with a link. */
function stateOf({ disabled, hasPassword, hasTotp }: Operator) {
  if (disabled) return "disabled";
  return hasPassword && hasTotp ? "active" : "pending";
}

/** The page where an operator sets up what is missing. The token stands behind the "#", so that browsers send it to no server. */
export function setUpPath(name: string, token: string): string {
  return `/console/set-up#${new URLSearchParams({ name, token })}`;
}
