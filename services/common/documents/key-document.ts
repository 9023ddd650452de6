// Shows a key to its account's managers, to its own holder, to operators in the console, and to scripts of the command. Its
// charges come from billing.

import { limitResetWord } from "#common/words/key-limits.ts";
import { effectiveScopes, scopeName } from "#common/words/scopes.ts";
import type { ApiKey } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import type { KeyUsage } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { type KeyLimitReset, Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { isoTime, isoTimeOrNull } from "./answer-values.ts";

/** The charges of a key that its document shows. An absent one is not known, and is shown as null. */
export type KeyCharges = Partial<Omit<KeyUsage, "keyId" | "$typeName" | "$unknown">>;

/** A key as its account's managers see it: OpenRouter's properties, and our own. */
export function toKeyDocument(key: ApiKey, usage: KeyCharges) {
  return {
    hash: key.keyId,
    name: key.name,
    disabled: key.disabled,
    webhookUrl: key.webhookUrl || null,
    lowBalanceUsdMicros: micros(usage.lowBalanceUsdMicros),
    ...sharedFields(key, usage),
    created_at: isoTimeOrNull(key.createTime),
    updated_at: isoTimeOrNull(key.updateTime),
    lastUsedAt: isoTimeOrNull(key.lastUseTime),
    formerSecretExpiresAt: isoTimeOrNull(key.formerSecretEndTime),
  };
}

/** A key as its own holder sees it. */
export function toOwnKeyDocument(key: ApiKey, usage: KeyCharges) {
  const isManager = effectiveScopes(key.scopes).has(Scope.KEYS);
  return {
    ...sharedFields(key, usage),
    is_free_tier: false,
    is_management_key: isManager,
    is_provisioning_key: isManager,
    rate_limit: {
      requests: key.requestsPerMinute,
      interval: "60s",
      note: "The same as requestsPerMinute.",
    },
  };
}

function sharedFields(key: ApiKey, usage: KeyCharges) {
  const limit = key.monthlyUsdMicrosLimit;
  const left = remainingOf(limit, usage.held, spentIn(key.limitReset, usage));
  return {
    label: `...${key.secretHint}`,
    limit: dollars(limit),
    limit_remaining: dollars(left),
    limit_reset: limit === undefined ? null : limitResetWord(key.limitReset),
    usage: dollars(usage.spent),
    usage_daily: dollars(usage.daySpent),
    usage_weekly: dollars(usage.weekSpent),
    usage_monthly: dollars(usage.monthSpent),
    // A caller cannot bring keys of upstreams.
    include_byok_in_limit: false,
    byok_usage: 0,
    byok_usage_daily: 0,
    byok_usage_weekly: 0,
    byok_usage_monthly: 0,
    creator_user_id: null,
    expires_at: isoTimeOrNull(key.expireTime),
    id: key.keyId,
    accountId: key.accountId,
    scopes: [...effectiveScopes(key.scopes)].map(scopeName),
    models: key.allowedModels.length === 0 ? null : key.allowedModels,
    requestsPerMinute: key.requestsPerMinute,
    spentUsdMicros: micros(usage.spent),
    spentMonthUsdMicros: micros(usage.monthSpent),
    limitUsdMicros: micros(limit),
    limitRemainingUsdMicros: micros(left),
  };
}

/** The part of a limit that a new hold may take. Undefined: there is no limit, or the part is not known. */
function remainingOf(
  limit: bigint | undefined,
  held: bigint | undefined,
  spent: bigint | undefined,
): bigint | undefined {
  if (limit === undefined || spent === undefined || held === undefined) return undefined;
  const left = limit - spent - held;
  return left > 0n ? left : 0n;
}

/** The charges that count against a limit. */
function spentIn(reset: KeyLimitReset, usage: KeyCharges): bigint | undefined {
  switch (limitResetWord(reset)) {
    case "daily":
      return usage.daySpent;
    case "weekly":
      return usage.weekSpent;
    case "monthly":
      return usage.monthSpent;
    case null:
      return usage.spent;
  }
}

// Exact up to 2^53 micros: nine billion dollars.
function micros(amount: bigint | undefined): number | null {
  return amount === undefined ? null : Number(amount);
}

function dollars(amount: bigint | undefined): number | null {
  return amount === undefined ? null : Number(amount) / 1_000_000;
}

/**
 * A key as operators see it in the console, at `nowMs`: a part of what its account's managers see, and its state. Scopes and models are
 * as they are stored. An empty list means all that is implied.
 */
export function operatorsKeyDocument(key: ApiKey, nowMs: number) {
  const { id, accountId, name, label, created_at, expires_at, lastUsedAt, ...bounds } =
    toKeyDocument(key, {});
  return {
    object: "key",
    ...{ id, accountId, name, label },
    scopes: key.scopes.map(scopeName),
    models: key.allowedModels,
    state: keyStateOf(key, nowMs),
    ...{ created_at, expires_at, lastUsedAt },
    revokedAt: isoTimeOrNull(key.revokeTime),
    limitUsdMicros: bounds.limitUsdMicros,
    limit_reset: bounds.limit_reset,
    requestsPerMinute: bounds.requestsPerMinute,
  };
}

function keyStateOf(key: ApiKey, nowMs: number): string {
  if (key.revokeTime) return "revoked";
  if (key.disabled) return "disabled";
  const expiresAt = isoTimeOrNull(key.expireTime);
  return expiresAt !== null && Date.parse(expiresAt) <= nowMs ? "expired" : "active";
}

/** A key as the command prints it for scripts. */
export function printedKey(key: ApiKey) {
  const reset = limitResetWord(key.limitReset);
  const limit = key.monthlyUsdMicrosLimit;
  return {
    keyId: key.keyId,
    accountId: key.accountId,
    name: key.name || undefined,
    disabled: key.disabled || undefined,
    secretHint: key.secretHint,
    scopes: key.scopes.map(scopeName),
    allowedModels: key.allowedModels,
    // For scripts, a month's limit keeps its name of the time before there were others.
    ...(reset === "monthly"
      ? { monthlyUsdMicros: limit }
      : {
          limitUsdMicros: limit,
          limitReset: limit === undefined ? undefined : (reset ?? "never"),
        }),
    webhookUrl: key.webhookUrl || undefined,
    requestsPerMinute: key.requestsPerMinute,
    createdAt: isoTime(key.createTime),
    expiresAt: key.expireTime && isoTime(key.expireTime),
    lastUsedAt: key.lastUseTime && isoTime(key.lastUseTime),
    revokedAt: key.revokeTime && isoTime(key.revokeTime),
    formerSecretValidUntil: key.formerSecretEndTime && isoTime(key.formerSecretEndTime),
  };
}
