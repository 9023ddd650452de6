import type { SqlRow, SqlValue } from "#kit/sqlite.ts";
import type { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Account } from "./key.ts";
import type { StoredKey } from "./store.ts";

/** The tables of auth, step by step. The revision begins at 1: 0 stands for "from now" in a watch. */
export const authSchema: readonly string[] = [
  `CREATE TABLE auth_account (
     account_id TEXT PRIMARY KEY,
     name TEXT NOT NULL,
     created_at_ms INTEGER NOT NULL,
     requests_per_minute INTEGER NOT NULL,
     operation_id TEXT UNIQUE,
     first_key_id TEXT NOT NULL,
     first_secret_sha256 BLOB NOT NULL
   ) STRICT;
   CREATE INDEX auth_account_by_age ON auth_account (created_at_ms, account_id);
   CREATE TABLE auth_key (
     key_id TEXT PRIMARY KEY,
     account_id TEXT NOT NULL REFERENCES auth_account (account_id),
     secret_sha256 BLOB NOT NULL UNIQUE,
     secret_hint TEXT NOT NULL,
     former_sha256 BLOB UNIQUE,
     former_end_ms INTEGER,
     scopes TEXT NOT NULL,
     allowed_models TEXT NOT NULL,
     created_at_ms INTEGER NOT NULL,
     expires_at_ms INTEGER,
     revoked_at_ms INTEGER,
     monthly_usd_micros_limit INTEGER,
     requests_per_minute INTEGER NOT NULL,
     revision INTEGER NOT NULL
   ) STRICT;
   CREATE INDEX auth_key_by_account ON auth_key (account_id, created_at_ms, key_id);
   CREATE INDEX auth_key_by_revision ON auth_key (revision);
   CREATE TABLE auth_revision (
     only_one INTEGER PRIMARY KEY CHECK (only_one = 1),
     revision INTEGER NOT NULL
   ) STRICT;
   INSERT INTO auth_revision VALUES (1, 1);`,
];

/** Columns of an account, from `auth_account a`. */
export const accountColumns = `a.account_id AS a_id, a.name AS a_name, a.created_at_ms AS a_created_at_ms,
  a.requests_per_minute AS a_requests_per_minute`;

const names = [
  "key_id",
  "account_id",
  "secret_sha256",
  "secret_hint",
  "former_sha256",
  "former_end_ms",
  "scopes",
  "allowed_models",
  "created_at_ms",
  "expires_at_ms",
  "revoked_at_ms",
  "monthly_usd_micros_limit",
  "requests_per_minute",
  "revision",
] as const;

/** Columns of a key, from `auth_key k`. */
export const keyColumns = names.map((name) => `k.${name}`).join(", ");
/** Takes {@link keyValues}. */
export const insertKeySql = `INSERT INTO auth_key (${names.join(", ")})
  VALUES (${names.map(() => "?").join(", ")})`;
/** Takes {@link keyValues} with the id moved to the end. */
export const updateKeySql = `UPDATE auth_key SET ${names
  .slice(1)
  .map((name) => `${name} = ?`)
  .join(", ")} WHERE key_id = ?`;

/** A key's columns, the id first. */
export function keyValues(key: StoredKey): SqlValue[] {
  return [
    key.keyId,
    key.accountId,
    key.secret.sha256,
    key.secret.hint,
    key.former?.sha256 ?? null,
    key.former?.endMs ?? null,
    JSON.stringify(key.scopes),
    JSON.stringify(key.allowedModels),
    key.createdAtMs,
    key.expiresAtMs ?? null,
    key.revokedAtMs ?? null,
    key.monthlyUsdMicrosLimit ?? null,
    key.requestsPerMinute,
    key.revision,
  ];
}

/** A key from {@link keyColumns}. */
export function keyOf(row: SqlRow): StoredKey {
  return {
    keyId: String(row.key_id),
    accountId: String(row.account_id),
    secret: { sha256: bytesOf(row.secret_sha256), hint: String(row.secret_hint) },
    ...(row.former_sha256 === null
      ? {}
      : { former: { sha256: bytesOf(row.former_sha256), endMs: Number(row.former_end_ms) } }),
    scopes: JSON.parse(String(row.scopes)) as Scope[],
    allowedModels: JSON.parse(String(row.allowed_models)) as string[],
    createdAtMs: Number(row.created_at_ms),
    ...(row.expires_at_ms === null ? {} : { expiresAtMs: Number(row.expires_at_ms) }),
    ...(row.revoked_at_ms === null ? {} : { revokedAtMs: Number(row.revoked_at_ms) }),
    ...(row.monthly_usd_micros_limit === null
      ? {}
      : { monthlyUsdMicrosLimit: row.monthly_usd_micros_limit as bigint }),
    requestsPerMinute: Number(row.requests_per_minute),
    revision: row.revision as bigint,
  };
}

/** An account from {@link accountColumns}. */
export function accountOf(row: SqlRow): Account {
  return {
    accountId: String(row.a_id),
    name: String(row.a_name),
    createdAtMs: Number(row.a_created_at_ms),
    requestsPerMinute: Number(row.a_requests_per_minute),
  };
}

/** A blob's bytes. */
export function bytesOf(value: SqlRow[string] | undefined): Buffer {
  return Buffer.from(value as Uint8Array);
}
