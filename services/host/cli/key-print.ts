import { isoTime } from "#common/documents/answer-values.ts";
import { limitResetWord } from "#common/words/key-limits.ts";
import { scopeName } from "#common/words/scopes.ts";
import type { ApiKey } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { dollars } from "./output.ts";

/** A key as it is printed. */
export function printableKey(key: ApiKey) {
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
    // A month's limit has the name of before there were others, for scripts.
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

/** A key's limit in a table. */
export function limitCell({ monthlyUsdMicrosLimit: limit, limitReset }: ApiKey): string {
  if (limit === undefined) return "none";
  const reset = limitResetWord(limitReset);
  return reset === "monthly" ? dollars(limit) : `${dollars(limit)} ${reset ?? "for ever"}`;
}
