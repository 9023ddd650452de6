// Decides which rights a key may hand on to another key of its account, and which keys may manage others at all.

import { effectiveScopes, impliedScopes, scopeName } from "#common/words/scopes.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { KeyLimitReset, Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Key } from "./key.ts";
import { defaultKeyRequestsPerMinute } from "./limits.ts";

/** The rights of a key that it can hand on to another key. */
export type KeyRights = Pick<
  Key,
  | "scopes"
  | "allowedModels"
  | "monthlyUsdMicrosLimit"
  | "limitReset"
  | "expiresAtMs"
  | "requestsPerMinute"
>;

/** The rule for each part of a {@link KeyRights}. The text is the acting key's refusal where it lacks the given right. */
const rules: Readonly<
  Record<
    keyof KeyRights,
    { param: string; lacks: (own: KeyRights, given: KeyRights) => string | undefined }
  >
> = {
  scopes: {
    param: "scopes",
    lacks(own, given) {
      const has = effectiveScopes(own.scopes);
      const lacking = [...effectiveScopes(given.scopes)].filter((scope) => !has.has(scope));
      return lacking.length === 0
        ? undefined
        : `lacks the scope '${lacking.map(scopeName).join("', '")}'`;
    },
  },
  allowedModels: {
    param: "models",
    lacks(own, given) {
      if (own.allowedModels.length === 0) return undefined;
      if (given.allowedModels.length === 0) return "may not use all models";
      const lacking = given.allowedModels.filter((id) => !own.allowedModels.includes(id));
      return lacking.length === 0 ? undefined : `may not use the model '${lacking.join("', '")}'`;
    },
  },
  monthlyUsdMicrosLimit: {
    param: "limit",
    lacks: (own, given) =>
      isAtMost(given.monthlyUsdMicrosLimit, own.monthlyUsdMicrosLimit)
        ? undefined
        : "has a lower limit",
  },
  limitReset: {
    param: "limit_reset",
    lacks(own, given) {
      if (own.monthlyUsdMicrosLimit === undefined) return undefined;
      const ownReset = own.limitReset ?? KeyLimitReset.MONTHLY;
      const reset = given.limitReset ?? KeyLimitReset.MONTHLY;
      // A day is within one week and one month. A week may be in two months.
      const isWithin =
        reset === ownReset || reset === KeyLimitReset.NEVER || ownReset === KeyLimitReset.DAILY;
      return isWithin ? undefined : "has a limit that begins anew less often";
    },
  },
  expiresAtMs: {
    param: "expiresAt",
    lacks: (own, given) =>
      isAtMost(given.expiresAtMs, own.expiresAtMs) ? undefined : "expires earlier",
  },
  requestsPerMinute: {
    param: "requestsPerMinute",
    lacks: (own, given) =>
      given.requestsPerMinute <= own.requestsPerMinute
        ? undefined
        : "may make fewer requests a minute",
  },
};

/** Absent means without bound. */
function isAtMost<T extends bigint | number>(given: T | undefined, own: T | undefined): boolean {
  return own === undefined || (given !== undefined && given <= own);
}

export const allRights = Object.keys(rules) as (keyof KeyRights)[];

/** Refuses with PERMISSION_DENIED where `own` lacks one of these parts of `given`. A key cannot give a right that it lacks. */
export function refuseBeyond(
  own: KeyRights,
  given: KeyRights,
  parts: readonly (keyof KeyRights)[] = allRights,
): void {
  for (const part of parts) {
    const { param, lacks } = rules[part];
    const lacking = lacks(own, given);
    if (lacking === undefined) continue;
    refuse(ErrorReason.PERMISSION_DENIED, {
      param,
      message: `The API key of this request ${lacking}. A key gives no other key more than it has itself: ask for less, or use a key that has more.`,
    });
  }
}

/** The rights of a new key whose maker names none: all rights of the maker, except for scopes that must be named. */
export function inherited(own: KeyRights): KeyRights {
  const { allowedModels, monthlyUsdMicrosLimit, limitReset, expiresAtMs } = own;
  return {
    scopes: [...effectiveScopes(own.scopes)].filter((scope) => impliedScopes.has(scope)),
    allowedModels,
    ...(monthlyUsdMicrosLimit === undefined ? {} : { monthlyUsdMicrosLimit }),
    ...(monthlyUsdMicrosLimit === undefined || limitReset === undefined ? {} : { limitReset }),
    ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
    requestsPerMinute: Math.min(own.requestsPerMinute, defaultKeyRequestsPerMinute),
  };
}

/** May this key act at `nowMs`? Refuses a deleted, disabled or expired key with INVALID_API_KEY. */
export function refuseEnded(key: Key | undefined, nowMs: number): Key {
  const isOver =
    !key || key.revokedAtMs !== undefined || key.disabled || nowMs >= (key.expiresAtMs ?? Infinity);
  return isOver ? refuse(ErrorReason.INVALID_API_KEY) : key;
}

/** Refuses with PERMISSION_DENIED a key that may not manage keys. */
export function refuseNoManager(key: Key): void {
  if (effectiveScopes(key.scopes).has(Scope.KEYS)) return;
  refuse(ErrorReason.PERMISSION_DENIED, {
    message: "The API key lacks the scope 'keys'.",
    metadata: { scope: "keys" },
  });
}
