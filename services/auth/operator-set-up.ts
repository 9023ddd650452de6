// Lets an operator who got a link choose a password and an authenticator. `operators.ts` makes the links.

import type { ServiceImpl } from "@connectrpc/connect";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { AuthService, SetUpOperatorRequest } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import type { AuthEvents } from "./events.ts";
import { hasLink, newRecoveryCodes, type Operator, useCode } from "./operator.ts";
import { type OperatorsContext, readProvenTotp } from "./operators.ts";
import type { HashCaller } from "./passwords.ts";
import * as read from "./requests.ts";
import type { SignInLimits } from "./sign-in-limits.ts";

/** The dependencies of the methods. */
interface SetUpContext extends OperatorsContext {
  signIns: SignInLimits;
  events: AuthEvents;
}

/** The methods of the link by which an operator sets up what is missing: the password, the second factor, or both. */
type SetUpMethods = Pick<ServiceImpl<typeof AuthService>, "getOperatorSetUp" | "setUpOperator">;

/** Makes the methods. */
export function createSetUpRoutes(context: SetUpContext): SetUpMethods {
  return {
    async getOperatorSetUp({ name, setUpToken }) {
      const operator = await linked(context, name, setUpToken);
      return {
        needsPassword: operator.password === undefined,
        needsTotp: operator.totp === undefined,
      };
    },
    async setUpOperator(request, { signal }) {
      const caller = { client: read.readClient(request.client), signal };
      const found = await linked(context, request.name, request.setUpToken);
      const set = () => setUp(context, found, request, caller);
      const recoveryCodes = await context.signIns.attempt(caller.client, set, found.name);
      if (recoveryCodes) return { recoveryCodes };
      context.events.signInFailed();
      const field = found.password === undefined ? "code" : "password";
      refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field } });
    },
  };
}

/** The operator of a link. Refuses with OBJECT_NOT_FOUND, whether the name, the token or the time is wrong. */
async function linked(
  { clock, operators }: SetUpContext,
  sentName: string,
  token: string,
): Promise<Operator> {
  const name = read.operatorNameOf(sentName);
  const found = name === undefined ? undefined : await operators.find(name);
  if (found && hasLink(found, token, clock.now())) return found;
  const message = "This link is not valid any more. Ask for a new one.";
  return refuse(ErrorReason.OBJECT_NOT_FOUND, { message });
}

/**
 * Sets up what the operator lacks, and ends the link. The present password or a present code is asked for, so that a link alone opens
 * nothing of an operator who had both. Answers new recovery codes, if there are any. Undefined: the present password or code is wrong.
 */
async function setUp(
  { clock, operators, passwords }: SetUpContext,
  found: Operator,
  { setUpToken, password: sent, totpSecret, code }: SetUpOperatorRequest,
  caller: HashCaller,
): Promise<string[] | undefined> {
  const kept = found.password;
  if (kept && !(await passwords.matches(kept, sent, caller))) return undefined;
  const proven = found.totp ? undefined : readProvenTotp(totpSecret, code, clock.now());
  const password = kept ?? (await passwords.hash(read.readPassword(sent), caller));
  const { codes, hashes } = newRecoveryCodes();
  let isSet = false;
  await operators.change(found.name, (before) => {
    isSet = false;
    const nowMs = clock.now();
    const isSame = before.password?.hash === kept?.hash && !before.totp === !found.totp;
    if (!isSame || !hasLink(before, setUpToken, nowMs)) return undefined;
    const checked = proven
      ? { after: { ...before, totp: proven, recovery: hashes }, isRight: true }
      : useCode(before, code, nowMs);
    isSet = checked.isRight;
    if (!isSet) return checked.after;
    const { setUp: _ended, ...after } = checked.after;
    return { ...after, password };
  });
  if (!isSet) return undefined;
  return proven ? codes : [];
}
