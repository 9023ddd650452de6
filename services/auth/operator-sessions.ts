// Signs operators in by name, password and code, and asks for both again before a risky act. `sessions.ts` has all other
// sessions.

import type { ServiceImpl } from "@connectrpc/connect";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { StopSignal } from "#kit/base/stop.ts";
import type { AuthService, OperatorProof } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { isActive, type Operator, signedIn, useCode } from "./operator.ts";
import type { Passwords } from "./passwords.ts";
import * as read from "./requests.ts";
import { begin, type SessionsContext } from "./sessions.ts";

/** The dependencies of the methods. */
interface NamedSessionsContext extends SessionsContext {
  passwords: Passwords;
}

/** The methods for sessions of operators who sign in by name. */
type NamedSessionMethods = Pick<
  ServiceImpl<typeof AuthService>,
  "createNamedSession" | "confirmNamedSession"
>;

/** Makes the methods. */
export function createNamedSessionRoutes(context: NamedSessionsContext): NamedSessionMethods {
  const { clock, sessions, signInLog, events } = context;
  const failed = async (client: string) => {
    events.signInFailed();
    await signInLog.failed(client);
  };
  return {
    async createNamedSession(request, { signal }) {
      const sha256 = read.readDigest(request.sessionSha256);
      const secretSha256 = read.readDigest(request.secretSha256);
      const client = read.readClient(request.client);
      const caller = { client, signal };
      const operator = await provenOperator(context, request.name, request.proof, caller);
      if (!operator) {
        await failed(client);
        refuse(ErrorReason.INVALID_API_KEY, { message: wrongProof });
      }
      const { name, epoch } = operator;
      const begun = { sha256, secretSha256, operator: { name, epoch } };
      const session = await signInLog.written("console.sign_in", begun, () =>
        begin(context, begun),
      );
      return { session };
    },
    async confirmNamedSession(request, { signal }) {
      const sha256 = read.readDigest(request.sessionSha256);
      const client = read.readClient(request.client);
      const session = await sessions.find(sha256);
      if (!session?.operator) refuse(ErrorReason.INVALID_API_KEY);
      const { name, epoch } = session.operator;
      const operator = await provenOperator(context, name, request.proof, { client, signal });
      if (operator?.epoch !== epoch) {
        await failed(client);
        return { confirmed: false };
      }
      await sessions.confirm(sha256, clock.now());
      return { confirmed: true };
    },
  };
}

/** One message for every cause, so that a stranger learns none. */
const wrongProof =
  "Name, password or code is wrong. Each code works once, so wait for the next one or use a recovery code.";

/**
 * The operator of a name, where password and code are right. It uses the code up. An unknown name takes the time of a known one. Refuses
 * with RATE_LIMIT_EXCEEDED as SignInLimits does.
 */
async function provenOperator(
  { clock, signIns, operators, passwords }: NamedSessionsContext,
  sentName: string,
  { password = "", code = "" }: Partial<OperatorProof> = {},
  caller: { client: string; signal: StopSignal },
): Promise<Operator | undefined> {
  const name = read.operatorNameOf(sentName);
  const found = name === undefined ? undefined : await operators.find(name);
  // Strangers' failures hold up no operator at an address that this operator has signed in from.
  const isKnown = found?.clients.includes(caller.client) ?? false;
  const prove = async () => {
    const isRight = await passwords.matches(found?.password, password, caller);
    if (!isRight || !found) return undefined;
    let isProven = false;
    const after = await operators.change(found.name, (before) => {
      isProven = false;
      // Since the password was checked, the operator may have been disabled, or the password changed.
      if (!isActive(before) || before.password?.hash !== found.password?.hash) return undefined;
      const nowMs = clock.now();
      const checked = useCode(before, code, nowMs);
      isProven = checked.isRight;
      return isProven ? signedIn(checked.after, caller.client, nowMs) : checked.after;
    });
    return isProven ? after : undefined;
  };
  return await signIns.attempt(caller.client, prove, isKnown ? undefined : name);
}
