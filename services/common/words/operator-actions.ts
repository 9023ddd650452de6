// Writes an operator's action to the audit log, around the action itself. Every action of the console and of the command runs in
// it.

import type { Peers } from "#common/agreements/peers.ts";
import { isRefusal, reasonName } from "#kit/base/errors.ts";
import type { Ids } from "#kit/base/ids.ts";
import { ActionOutcome } from "#proto/genmesh/auth/v1/auth_service_pb.ts";

/** An action that an operator is about to take. It holds only ids and figures, and neither names nor secrets. */
export interface PlannedAction {
  /** "account.top_up" */
  action: string;
  accountId?: string;
  /** The key, job, hold or entry. */
  target?: string;
  details?: Readonly<Record<string, string | number | boolean | null>>;
}

/** The result of an action, beside its answer. */
export interface DoneAction {
  /** Set where the account was not known before. */
  accountId?: string | undefined;
  target?: string | undefined;
}

/** The operator who acts, and the services for it. */
export interface ActionContext {
  auth: Pick<Peers["auth"], "beginAction" | "endAction">;
  ids: Ids;
  actor: string;
}

/** Characters of an action's id after its prefix: 103 bits. */
const idChars = 20;

/**
 * Runs an operator's action with a line in the audit log. The line is written before the action, so that no action is without one, and
 * ended after it. A line without an end means that its process ended in between, or that the answer was lost.
 */
export async function audited<T>(
  { auth, ids, actor }: ActionContext,
  planned: PlannedAction,
  work: () => Promise<T>,
  doneOf: (answer: T) => DoneAction = () => ({}),
): Promise<T> {
  const actionId = ids.make("act", idChars);
  const { action, accountId = "", target = "", details = {} } = planned;
  const line = { actionId, actor, action, accountId, target, details: JSON.stringify(details) };
  await auth.beginAction({ action: line });
  try {
    const answer = await work();
    const done = doneOf(answer);
    await auth
      .endAction({
        ...{ actionId, outcome: ActionOutcome.DONE },
        ...{ accountId: done.accountId ?? "", target: done.target ?? "" },
      })
      .catch(() => {});
    return answer;
  } catch (error) {
    // Only a refusal shows whether anything was changed.
    if (isRefusal(error)) {
      const reason = reasonName(error.reason).toLowerCase();
      const isOver = reason !== "service_unavailable" && reason !== "internal_error";
      const end = { actionId, outcome: ActionOutcome.REFUSED, reason };
      if (isOver) await auth.endAction(end).catch(() => {});
    }
    throw error;
  }
}
