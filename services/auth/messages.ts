// Turns accounts and keys into messages of the wire. `requests.ts` goes the other way.

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Account as AccountMessage,
  AccountSchema,
  type ApiKey,
  ApiKeySchema,
} from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { KeyLimitReset } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Account } from "./account.ts";
import type { FoundKey, StoredKey } from "./store.ts";

/** An account's message, with the operators' notes. */
export function toWholeAccountMessage(account: Account): AccountMessage {
  return { ...toAccountMessage(account), notes: account.notes ?? "" };
}

/** An account's message, without notes. */
export function toAccountMessage(account: Account): AccountMessage {
  return create(AccountSchema, {
    accountId: account.accountId,
    name: account.name,
    createTime: timestampFromMs(account.createdAtMs),
    requestsPerMinute: account.requestsPerMinute,
    rateIsSet: account.rateIsSet ?? false,
    ...(account.suspendedAtMs === undefined
      ? {}
      : { suspendTime: timestampFromMs(account.suspendedAtMs) }),
    ...(account.closingAtMs === undefined
      ? {}
      : { closingTime: timestampFromMs(account.closingAtMs) }),
    ...(account.closedAtMs === undefined ? {} : { closeTime: timestampFromMs(account.closedAtMs) }),
  });
}

/** A key's message, without secrets and hashes. A grace that has ended is not shown. */
export function toKeyMessage(key: StoredKey, nowMs: number): ApiKey {
  const graceEndMs = key.former && key.former.endMs > nowMs ? key.former.endMs : undefined;
  return create(ApiKeySchema, {
    keyId: key.keyId,
    accountId: key.accountId,
    secretHint: key.secret.hint,
    scopes: [...key.scopes],
    allowedModels: [...key.allowedModels],
    createTime: timestampFromMs(key.createdAtMs),
    requestsPerMinute: key.requestsPerMinute,
    revision: key.revision,
    name: key.name ?? "",
    disabled: key.disabled ?? false,
    webhookUrl: key.webhookUrl ?? "",
    ...(key.lastUsedAtMs === undefined ? {} : { lastUseTime: timestampFromMs(key.lastUsedAtMs) }),
    ...(key.updatedAtMs === undefined ? {} : { updateTime: timestampFromMs(key.updatedAtMs) }),
    ...(key.expiresAtMs === undefined ? {} : { expireTime: timestampFromMs(key.expiresAtMs) }),
    ...(key.revokedAtMs === undefined ? {} : { revokeTime: timestampFromMs(key.revokedAtMs) }),
    ...(graceEndMs === undefined ? {} : { formerSecretEndTime: timestampFromMs(graceEndMs) }),
    limitReset: key.limitReset ?? KeyLimitReset.MONTHLY,
    ...(key.monthlyUsdMicrosLimit === undefined
      ? {}
      : { monthlyUsdMicrosLimit: key.monthlyUsdMicrosLimit }),
  });
}

/** A key with the rate that it has: no more than one that is set for its account. */
export function toBoundKeyMessage(
  { key, account }: Pick<FoundKey, "key" | "account">,
  nowMs: number,
) {
  const { rateIsSet, requestsPerMinute } = account;
  const isBound = rateIsSet && requestsPerMinute < key.requestsPerMinute;
  return toKeyMessage(isBound ? { ...key, requestsPerMinute } : key, nowMs);
}

/** A key and its account, as gateways admit requests by them. */
export function toAdmittedFields(found: Pick<FoundKey, "key" | "account">, nowMs: number) {
  const { account } = found;
  return {
    key: toBoundKeyMessage(found, nowMs),
    accountRequestsPerMinute: account.requestsPerMinute,
    accountSuspended: account.suspendedAtMs !== undefined,
  };
}
