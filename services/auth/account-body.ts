import { accountProperties } from "#common/words/account-change.ts";
import { type NumberRule, optionalNumber } from "#common/words/body.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { type Account, withRate } from "./account.ts";
import { has, refuseUnknown } from "./key-body.ts";
import { maxRequestsPerMinute } from "./limits.ts";

/** The values that a change of an account asks for. An absent part stays unchanged. */
export interface AskedAccount {
  /** Null means the default. */
  requestsPerMinute?: number | null;
}

/** Reads the body of a change of an account. */
export function readAccountChange(body: JsonObject): AskedAccount {
  refuseUnknown(body, accountProperties, []);
  return {
    ...(has(body, "requestsPerMinute") ? { requestsPerMinute: readRate(body) } : {}),
  };
}

/** The account with the values that a change asks for. */
export function accountWith(asked: AskedAccount, account: Account): Account {
  const { requestsPerMinute: rate } = asked;
  return rate === undefined ? account : withRate(account, rate);
}

function readRate(body: JsonObject): number | null {
  const rule: NumberRule = { min: 1, max: maxRequestsPerMinute, integer: true };
  return optionalNumber(body, "requestsPerMinute", rule) ?? null;
}
