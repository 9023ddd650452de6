// Writes sign-ins, sign-outs and failed sign-ins of operators into the audit log. Other acts of operators are written by
// `actions.ts`.

import { createHash } from "node:crypto";
import type { Ids } from "#kit/base/ids.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { ActionStore } from "./action.ts";
import { idChars, signInFailuresTogetherMs } from "./limits.ts";
import { actorOf, type Session } from "./session.ts";

/** Writes sessions of the console into the operators' audit log. */
export interface SignInLog extends AsyncDisposable {
  /** Signs an operator in or out. The line is written before and ended after, so that no operator acts unseen. */
  written<T>(
    action: "console.sign_in" | "console.sign_out",
    session: Pick<Session, "sha256" | "identity" | "operator">,
    work: () => Promise<T>,
  ): Promise<T>;
  /**
   * Records a refused sign-in of an operator. The first failure is a line at once. Further ones of the same minute are one more line,
   * because the log is never pruned and guesses must not fill it. Never rejects.
   */
  failed(client: string): Promise<void>;
}

export function createSignInLog(deps: {
  actions: ActionStore;
  clock: Clock;
  ids: Ids;
  /** Called where a line could not be written. */
  trouble(error: unknown): void;
}): SignInLog {
  const { actions, clock, ids, trouble } = deps;
  /** Failures since the last line, each by its client. Undefined where no minute runs. */
  let counted: string[] | undefined;
  const write = async (clients: readonly string[]) => {
    const actionId = ids.make("act", idChars);
    const details = JSON.stringify({ failures: clients.length, clients: new Set(clients).size });
    const beganAtMs = clock.now();
    const of = { actionId, accountId: "", target: "" };
    await actions.begin({ ...of, actor: "unknown", action: "console.sign_in", details, beganAtMs });
    const end = { outcome: "refused", reason: "invalid_api_key", endedAtMs: beganAtMs } as const;
    await actions.end({ ...of, ...end });
  };
  const over = new AbortController();
  /** At the end of the process the counted failures are written at once. */
  const writeMinute = async () => {
    await clock.sleep(signInFailuresTogetherMs, over.signal).catch(() => {});
    const clients = counted ?? [];
    counted = undefined;
    if (clients.length > 0) await write(clients).catch(trouble);
  };
  let minute: Promise<void> | undefined;
  return {
    async written(action, session, work) {
      const actionId = actionIdOf(action, session);
      const actor = actorOf(session);
      const of = { actionId, accountId: "", target: "" };
      await actions.begin({ ...of, actor, action, details: "{}", beganAtMs: clock.now() });
      const answer = await work();
      const end = { ...of, outcome: "done", reason: "", endedAtMs: clock.now() } as const;
      // The action is done. A line without an end records it too.
      await actions.end(end).catch(trouble);
      return answer;
    },
    async failed(client) {
      if (counted) {
        counted.push(client);
        return;
      }
      counted = [];
      minute = writeMinute();
      await write([client]).catch(trouble);
    },
    async [Symbol.asyncDispose]() {
      over.abort();
      await minute;
    },
  };
}

/** A session begins and ends once, so a repeat makes the same line. */
function actionIdOf(action: string, { sha256 }: Pick<Session, "sha256">): string {
  const hash = createHash("sha256").update(action).update(sha256).digest("hex");
  return `act_${hash.slice(0, idChars)}`;
}
