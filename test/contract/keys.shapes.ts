import { createHash } from "node:crypto";
import type { Key } from "../../services/auth/key.ts";
import type { NewAccount } from "../../services/auth/store.ts";

/** The time at which accounts and keys are made. */
export const t0 = Date.UTC(2026, 0, 15, 12);

/** An account and its first key. */
export function newAccount(
  suffix: string,
  given: Partial<Pick<NewAccount, "operationId" | "secretBrought">> & {
    secret: string;
    name?: string;
    createdAtMs?: number;
  },
): NewAccount {
  const { secret, name = suffix, createdAtMs = t0, ...rest } = given;
  const accountId = `acct_${suffix}`;
  return {
    account: { accountId, name, createdAtMs, requestsPerMinute: 6_000 },
    key: { ...newKey(suffix, accountId, secret), createdAtMs },
    secretBrought: false,
    ...rest,
  };
}

/** A key with all rights. */
export function newKey(suffix: string, accountId: string, secret: string): Key {
  return {
    keyId: `key_${suffix}`,
    accountId,
    secret: digest(secret),
    scopes: [],
    allowedModels: [],
    createdAtMs: t0,
    requestsPerMinute: 3_000,
  };
}

/** The stored form of a secret. */
export function digest(secret: string) {
  return { sha256: createHash("sha256").update(secret).digest(), hint: secret.slice(-4) };
}
