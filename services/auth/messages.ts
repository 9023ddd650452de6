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
import type { Account } from "./key.ts";
import type { StoredKey } from "./store.ts";

/** An account's message. */
export function toAccountMessage(account: Account): AccountMessage {
  return create(AccountSchema, {
    accountId: account.accountId,
    name: account.name,
    createTime: timestampFromMs(account.createdAtMs),
    requestsPerMinute: account.requestsPerMinute,
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
