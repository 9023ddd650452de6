import type { Peers } from "#common/agreements/peers.ts";
import { isRefusal, reasonName } from "#kit/base/errors.ts";
import type { Ids } from "#kit/base/ids.ts";
import { ActionOutcome } from "#proto/genmesh/auth/v1/auth_service_pb.ts";

/** What an operator is about to do. Ids and figures alone: no name, no secret. */
export interface PlannedAction {
  /** "account.top_up" */
  action: string;
  accountId?: string;
  /** The key, job, hold or entry. */
  target?: string;
  details?: Readonly<Record<string, string | number | boolean | null>>;
}

/** What came out of it, beside its answer. */
export interface DoneAction {
  /** Where that was not known before. */
  accountId?: string | undefined;
  target?: string | undefined;
}

/** Who acts, and by what. */
export interface ActionContext {
  auth: Pick<Peers["auth"], "beginAction" | "endAction">;
  ids: Ids;
  actor: string;
}

/** Characters of an action's id behind its prefix: 103 bits. */
const idChars = 20;

/**
 * Does what an operator asked for, with a line in the audit log: written before, so that nothing is done that is not written
 * down, and ended after. A line without an end means that its process ended in between, or that the answer was lost.
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
    // Whether anything was changed is known of refusals alone.
    if (isRefusal(error)) {
      const reason = reasonName(error.reason).toLowerCase();
      const isOver = reason !== "service_unavailable" && reason !== "internal_error";
      const end = { actionId, outcome: ActionOutcome.REFUSED, reason };
      if (isOver) await auth.endAction(end).catch(() => {});
    }
    throw error;
  }
}
