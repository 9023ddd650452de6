import { createHash } from "node:crypto";
import type { Ids } from "#kit/base/ids.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { ActionStore } from "./action.ts";
import { idChars, signInFailuresTogetherMs } from "./limits.ts";
import type { Session } from "./session.ts";

/** What the operators' audit log holds of the console's sessions. */
export interface SignInLog extends AsyncDisposable {
  /** Lets an operator in or out: written down before and ended after, so that no operator acts unseen. */
  written<T>(
    action: "console.sign_in" | "console.sign_out",
    session: Pick<Session, "sha256" | "identity">,
    work: () => Promise<T>,
  ): Promise<T>;
  /**
   * A sign-in where operators are was refused. The first failure is a line at once; those of the minute behind it are one more
   * line, so that guessing fills no log that nothing is removed from. Never rejects.
   */
  failed(client: string): Promise<void>;
}

/** Makes it. */
export function createSignInLog(deps: {
  actions: ActionStore;
  clock: Clock;
  ids: Ids;
  /** Told of a line that could not be written. */
  trouble(error: unknown): void;
}): SignInLog {
  const { actions, clock, ids, trouble } = deps;
  /** Failures since the last line, each by its client; undefined: no minute runs. */
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
  /** At the end of the process what was counted is written at once. */
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
      const { identity } = session;
      const actor = identity ? `${identity.issuer} ${identity.subject}` : "admin token";
      const of = { actionId, accountId: "", target: "" };
      await actions.begin({ ...of, actor, action, details: "{}", beganAtMs: clock.now() });
      const answer = await work();
      const end = { ...of, outcome: "done", reason: "", endedAtMs: clock.now() } as const;
      // It has been done: a line without an end says so as well.
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

/** A session begins and ends once, so a repeat is the same line. */
function actionIdOf(action: string, { sha256 }: Pick<Session, "sha256">): string {
  const hash = createHash("sha256").update(action).update(sha256).digest("hex");
  return `act_${hash.slice(0, idChars)}`;
}
