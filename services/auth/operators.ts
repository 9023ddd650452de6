// Answers the methods by which operators are added, disabled, removed and given new passwords or authenticators.

import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { Ids } from "#kit/base/ids.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { AuthService } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { idChars } from "./limits.ts";
import { codesRefusedUntil, newRecoveryCodes, type Operator, withLink } from "./operator.ts";
import { codesWithin, maxOperators, setUpTokenChars } from "./operator-limits.ts";
import type { OperatorStore } from "./operator-store.ts";
import type { Passwords } from "./passwords.ts";
import * as read from "./requests.ts";
import type { SessionStore } from "./session-store.ts";
import { hashSecret, newTotpSecret, stepOfCode, totpUri } from "./totp.ts";

/** The dependencies of the methods. */
export interface OperatorsContext {
  clock: Clock;
  ids: Ids;
  operators: OperatorStore;
  passwords: Passwords;
  sessions: SessionStore;
}

/** The methods by which operators are managed. */
type OperatorMethods = Pick<
  ServiceImpl<typeof AuthService>,
  | "listOperators"
  | "addOperator"
  | "setOperatorState"
  | "removeOperator"
  | "resetOperatorPassword"
  | "resetOperatorTotp"
  | "draftTotp"
  | "replaceOperatorTotp"
  | "replaceRecoveryCodes"
>;

/** Hashes for those who manage operators wait in one queue. */
const managing = "operators";

/** Makes the methods. */
export function createOperatorRoutes(context: OperatorsContext): OperatorMethods {
  const { clock, ids, operators, passwords, sessions } = context;
  const shown = (operator: Operator) => toMessage(operator, clock.now());
  /** Changes an operator and ends the operator's sessions. The new epoch ends one that begins meanwhile. */
  const changeAndEnd = async (name: string, step: (operator: Operator) => Operator) => {
    const epoch = newEpoch(ids);
    const changed = await changeKnown(operators, name, (one) => ({ ...step(one), epoch }));
    await sessions.endOf(changed.name);
    return shown(changed);
  };
  return {
    async listOperators() {
      return { operators: (await operators.list()).map(shown) };
    },
    addOperator: (request, { signal }) => addOperator(context, request, signal),
    async setOperatorState({ name, disabled }) {
      return {
        operator: await changeAndEnd(name, ({ disabled: _, ...one }) =>
          disabled ? { ...one, disabled } : one,
        ),
      };
    },
    async removeOperator({ name }) {
      const known = read.operatorNameOf(name);
      if (known === undefined) return {};
      await operators.remove(known);
      await sessions.endOf(known);
      return {};
    },
    async resetOperatorPassword({ name, password: sent }, { signal }) {
      if (sent === "") {
        const token = newToken(ids);
        const operator = await changeAndEnd(name, ({ password: _, ...one }) =>
          withLink(one, hashSecret(token), clock.now()),
        );
        return { operator, setUpToken: token };
      }
      const caller = { client: managing, signal };
      const password = await passwords.hash(read.readPassword(sent), caller);
      return { operator: await changeAndEnd(name, (one) => ({ ...one, password })) };
    },
    async resetOperatorTotp({ name, byLink }) {
      if (byLink) {
        const token = newToken(ids);
        const operator = await changeAndEnd(name, ({ totp: _, wrongCodes: __, ...one }) => ({
          ...withLink(one, hashSecret(token), clock.now()),
          recovery: [],
        }));
        return { operator, setUpToken: token };
      }
      const { fields, totp } = makeTotp(name.toLowerCase());
      return {
        operator: await changeAndEnd(name, ({ wrongCodes: _, ...one }) => ({ ...one, ...fields })),
        totp,
      };
    },
    draftTotp: ({ name }) => ({ uri: totpUri(name, newTotpSecret()) }),
    async replaceOperatorTotp({ name, totpSecret, code }) {
      const totp = readProvenTotp(totpSecret, code, clock.now());
      const { codes, hashes } = newRecoveryCodes();
      await changeKnown(operators, name, ({ wrongCodes: _, ...one }) => ({
        ...one,
        totp,
        recovery: hashes,
      }));
      return { recoveryCodes: codes };
    },
    async replaceRecoveryCodes({ name }) {
      const { codes, hashes } = newRecoveryCodes();
      await changeKnown(operators, name, (one) => ({ ...one, recovery: hashes }));
      return { recoveryCodes: codes };
    },
  };
}

async function addOperator(
  { clock, ids, operators, passwords }: OperatorsContext,
  request: { name: string; password: string },
  signal: AbortSignal,
) {
  const nowMs = clock.now();
  const name = read.readOperatorName(request.name);
  const bare = { name, createdAtMs: nowMs, recovery: [], clients: [], epoch: newEpoch(ids) };
  const known = await operators.list();
  if (known.length >= maxOperators) {
    const message = `There are ${maxOperators} operators already, which is the most.`;
    refuse(ErrorReason.OPERATION_CONFLICT, { message });
  }
  const added = async (operator: Operator) => {
    const message = "There is an operator of this name.";
    if (!(await operators.add(operator))) refuse(ErrorReason.OPERATION_CONFLICT, { message });
    return toMessage(operator, nowMs);
  };
  if (request.password === "") {
    const token = newToken(ids);
    return { operator: await added(withLink(bare, hashSecret(token), nowMs)), setUpToken: token };
  }
  const caller = { client: managing, signal };
  const password = await passwords.hash(read.readPassword(request.password), caller);
  const { fields, totp } = makeTotp(name);
  return { operator: await added({ ...bare, password, ...fields }), totp };
}

/** Refuses with OBJECT_NOT_FOUND where there is no such operator. */
async function changeKnown(
  operators: OperatorStore,
  name: string,
  step: (operator: Operator) => Operator,
): Promise<Operator> {
  const known = read.operatorNameOf(name);
  const changed = known === undefined ? undefined : await operators.change(known, step);
  return changed ?? refuse(ErrorReason.OBJECT_NOT_FOUND, { message: "There is no such operator." });
}

/** A new second factor: the fields by which it is kept, and what is shown of it once. */
function makeTotp(name: string) {
  const secret = newTotpSecret();
  const { codes, hashes } = newRecoveryCodes();
  return {
    fields: { totp: { secret, lastStep: 0 }, recovery: hashes },
    totp: { uri: totpUri(name, secret), recoveryCodes: codes },
  };
}

/** A second factor that an operator has proven by a code, which is used up. Refuses with INVALID_ARGUMENT. */
export function readProvenTotp(sent: string, code: string, nowMs: number) {
  const secret = read.readTotpSecret(sent);
  const step = stepOfCode(secret, code, nowMs, codesWithin);
  if (step === undefined) refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field: "code" } });
  return { secret, lastStep: step };
}

/** Sessions belong to an epoch. A new one ends them. */
function newEpoch(ids: Ids): string {
  return ids.make("epoch", idChars);
}

function newToken(ids: Ids): string {
  return ids.make("setup", setUpTokenChars);
}

function toMessage(operator: Operator, nowMs: number) {
  const { name, createdAtMs, disabled = false, recovery, signedInAtMs, setUp } = operator;
  const refusedUntil = codesRefusedUntil(operator, nowMs);
  return {
    ...{ name, disabled, createTime: timestampFromMs(createdAtMs) },
    hasPassword: operator.password !== undefined,
    hasTotp: operator.totp !== undefined,
    recoveryCodes: recovery.length,
    ...(signedInAtMs === undefined ? {} : { signInTime: timestampFromMs(signedInAtMs) }),
    ...(setUp && setUp.endsAtMs > nowMs ? { setUpEndTime: timestampFromMs(setUp.endsAtMs) } : {}),
    ...(refusedUntil === undefined ? {} : { codesRefusedUntil: timestampFromMs(refusedUntil) }),
  };
}
