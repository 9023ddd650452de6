// Answers the methods that write and list the operators' audit log. The console calls them around each act of an operator.
// Sign-ins are written by `sign-in-log.ts`.

import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { isJsonObject, type JsonValue } from "#kit/base/json.ts";
import type { Clock } from "#kit/time/clock.ts";
import { ActionOutcome, type AuthService } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import type { ActionStore, OperatorAction } from "./action.ts";
import { maxActionDetailsChars, maxActorChars } from "./limits.ts";
import { readPageSize } from "./requests.ts";

/** The methods of the audit log. */
type ActionMethods = Pick<
  ServiceImpl<typeof AuthService>,
  "beginAction" | "endAction" | "listActions"
>;

/** Makes the methods. */
export function createActionRoutes(context: { clock: Clock; actions: ActionStore }): ActionMethods {
  const { clock, actions } = context;
  return {
    async beginAction({ action }) {
      const {
        actionId,
        actor,
        action: name,
        accountId,
        target,
        details,
      } = action ?? invalid("action");
      if (!actionIdPattern.test(actionId)) invalid("action_id");
      if (actor === "" || actor.length > maxActorChars) invalid("actor");
      if (!namePattern.test(name)) invalid("action");
      if (!optionalIdPattern.test(accountId)) invalid("account_id");
      if (!targetPattern.test(target)) invalid("target");
      if (!isDetails(details)) invalid("details");
      const beganAtMs = clock.now();
      const line = { actionId, actor, action: name, accountId, target, details, beganAtMs };
      await actions.begin(line);
      return {};
    },
    async endAction({ actionId, outcome, reason, accountId, target }) {
      if (!actionIdPattern.test(actionId)) invalid("action_id");
      if (!targetPattern.test(reason)) invalid("reason");
      if (!optionalIdPattern.test(accountId)) invalid("account_id");
      if (!targetPattern.test(target)) invalid("target");
      const named = outcome === ActionOutcome.DONE ? "done" : "refused";
      if (outcome === ActionOutcome.UNSPECIFIED) invalid("outcome");
      const endedAtMs = clock.now();
      await actions.end({ actionId, outcome: named, reason, accountId, target, endedAtMs });
      return {};
    },
    async listActions({ pageSize, pageToken, accountId }) {
      if (!optionalIdPattern.test(accountId)) invalid("account_id");
      const size = readPageSize(pageSize);
      const after = readToken(pageToken);
      const page = { accountId, limit: size + 1, ...(after ? { after } : {}) };
      const found = await actions.list(page);
      const last = found.length > size ? found[size - 1] : undefined;
      return {
        actions: found.slice(0, size).map(toMessage),
        nextPageToken: last ? tokenAfter(last) : "",
      };
    },
  };
}

const actionIdPattern = /^act_[a-z0-9]{20}$/;
const namePattern = /^[a-z_]{1,29}\.[a-z_]{1,30}$/;
const optionalIdPattern = /^[A-Za-z0-9_-]{0,64}$/;
const targetPattern = /^[\x20-\x7e]{0,100}$/;

function isDetails(text: string): boolean {
  if (text.length > maxActionDetailsChars) return false;
  try {
    const value: JsonValue = JSON.parse(text);
    return isJsonObject(value);
  } catch {
    return false;
  }
}

function toMessage(action: OperatorAction) {
  const { beganAtMs, endedAtMs, outcome, reason = "", ...rest } = action;
  return {
    ...rest,
    reason,
    outcome: outcome === undefined ? ActionOutcome.UNSPECIFIED : outcomes[outcome],
    beginTime: timestampFromMs(beganAtMs),
    ...(endedAtMs === undefined ? {} : { endTime: timestampFromMs(endedAtMs) }),
  };
}

const outcomes = { done: ActionOutcome.DONE, refused: ActionOutcome.REFUSED } as const;

function tokenAfter({ beganAtMs, actionId }: OperatorAction): string {
  return Buffer.from(`${beganAtMs}:${actionId}`).toString("base64url");
}

function readToken(token: string): { beganAtMs: number; actionId: string } | undefined {
  if (token === "") return undefined;
  const text = Buffer.from(token, "base64url").toString();
  const [, ms, actionId] = /^(\d{1,16}):(act_[a-z0-9]{20})$/.exec(text) ?? [];
  if (ms === undefined || actionId === undefined) invalid("page_token");
  return { beganAtMs: Number(ms), actionId };
}

function invalid(field: string): never {
  refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field } });
}
