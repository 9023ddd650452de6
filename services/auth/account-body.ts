// Reads the JSON body by which an operator changes an account, and makes the changed account of it.

import { accountProperties } from "#common/agreements/account-change.ts";
import { type NumberRule, optionalNumber, optionalString } from "#common/words/body.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { type Account, withName, withNotes, withRate } from "./account.ts";
import { has, readNamePart, refuseUnknown } from "./key-body.ts";
import { maxMonthlyGrant, maxNotesChars, maxRequestsPerMinute } from "./limits.ts";

/** The values that a change of an account asks for. An absent part stays unchanged. */
export interface AskedAccount {
  name?: string;
  /** "" means none. */
  notes?: string;
  /** Null means the default. */
  requestsPerMinute?: number | null;
  /** Billing keeps this, and the next. 0 means none. */
  grantUsdMicros?: bigint;
  grantCredits?: bigint;
}

/** Reads the body of a change of an account. */
export function readAccountChange(body: JsonObject): AskedAccount {
  refuseUnknown(body, accountProperties, []);
  const rate: NumberRule = { min: 1, max: maxRequestsPerMinute, integer: true };
  return {
    ...readNamePart(body),
    ...(has(body, "notes")
      ? { notes: optionalString(body, "notes", { max: maxNotesChars }) ?? "" }
      : {}),
    ...(has(body, "requestsPerMinute")
      ? { requestsPerMinute: optionalNumber(body, "requestsPerMinute", rate) ?? null }
      : {}),
    ...(has(body, usdGrant) ? { grantUsdMicros: readGrant(body, usdGrant) } : {}),
    ...(has(body, creditsGrant) ? { grantCredits: readGrant(body, creditsGrant) } : {}),
  };
}

const usdGrant = "monthlyGrantUsdMicros";
const creditsGrant = "monthlyGrantCredits";

function readGrant(body: JsonObject, name: string): bigint {
  const rule: NumberRule = { min: 0, max: Number(maxMonthlyGrant), integer: true };
  return BigInt(optionalNumber(body, name, rule) ?? 0);
}

/** The part of a change that billing keeps. */
export function monthlyGrantField({
  grantUsdMicros: usdMicros,
  grantCredits: credits,
}: AskedAccount) {
  if (usdMicros === undefined && credits === undefined) return {};
  return {
    monthlyGrant: {
      ...(usdMicros === undefined ? {} : { usdMicros }),
      ...(credits === undefined ? {} : { credits }),
    },
  };
}

/** The account with the values that a change asks for. */
export function accountWith(asked: AskedAccount, account: Account): Account {
  const { name, notes, requestsPerMinute: rate } = asked;
  let changed = account;
  if (name !== undefined) changed = withName(changed, name);
  if (notes !== undefined) changed = withNotes(changed, notes);
  if (rate !== undefined) changed = withRate(changed, rate);
  return changed;
}
