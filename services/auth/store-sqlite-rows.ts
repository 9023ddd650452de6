// Declares the tables of accounts and keys in SQLite, and turns rows into keys and back.

import { storedLimitReset } from "#common/words/key-limits.ts";
import type { SqlRow, SqlValue } from "#kit/store/sqlite.ts";
import type { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Account } from "./account.ts";
import type { KeyOperation } from "./key.ts";
import type { StoredKey } from "./store.ts";

/** The tables of auth, step by step. The revision begins at 1, because 0 means "from now" in a watch. */
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
  `ALTER TABLE auth_account ADD COLUMN suspended_at_ms INTEGER;
   ALTER TABLE auth_key ADD COLUMN name TEXT;
   ALTER TABLE auth_key ADD COLUMN disabled INTEGER NOT NULL DEFAULT 0;
   ALTER TABLE auth_key ADD COLUMN last_used_at_ms INTEGER;
   ALTER TABLE auth_key ADD COLUMN updated_at_ms INTEGER;
   ALTER TABLE auth_key ADD COLUMN made_slot TEXT;
   ALTER TABLE auth_key ADD COLUMN made_body TEXT;
   ALTER TABLE auth_key ADD COLUMN rotations TEXT;
   CREATE UNIQUE INDEX auth_key_by_made_slot ON auth_key (made_slot);`,
  "ALTER TABLE auth_key ADD COLUMN webhook_url TEXT;",
  // For names of earlier versions, a search ignores only the case of A to Z.
  `ALTER TABLE auth_account ADD COLUMN closing_at_ms INTEGER;
   ALTER TABLE auth_account ADD COLUMN closed_at_ms INTEGER;
   ALTER TABLE auth_account ADD COLUMN name_key TEXT NOT NULL DEFAULT '';
   UPDATE auth_account SET name_key = lower(name);
   CREATE INDEX auth_account_by_name ON auth_account (name_key, account_id);
   CREATE INDEX auth_account_closing ON auth_account (closing_at_ms)
     WHERE closing_at_ms IS NOT NULL AND closed_at_ms IS NULL;
   CREATE INDEX auth_key_by_age ON auth_key (created_at_ms, key_id);`,
  // Limits of earlier versions are for a month. Their `limit_reset` is null.
  "ALTER TABLE auth_key ADD COLUMN limit_reset INTEGER;",
  "ALTER TABLE auth_account ADD COLUMN rate_is_set INTEGER NOT NULL DEFAULT 0;",
  `ALTER TABLE auth_account ADD COLUMN first_name TEXT;
   ALTER TABLE auth_account ADD COLUMN notes TEXT;`,
];

/** Columns of an account, from `auth_account a`. */
export const accountColumns = `a.account_id AS a_id, a.name AS a_name, a.created_at_ms AS a_created_at_ms,
  a.requests_per_minute AS a_requests_per_minute, a.suspended_at_ms AS a_suspended_at_ms,
  a.closing_at_ms AS a_closing_at_ms, a.closed_at_ms AS a_closed_at_ms,
  a.rate_is_set AS a_rate_is_set, a.first_name AS a_first_name, a.notes AS a_notes`;

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
  "name",
  "disabled",
  "last_used_at_ms",
  "updated_at_ms",
  "made_slot",
  "made_body",
  "rotations",
  "webhook_url",
  "limit_reset",
  "revision",
] as const;

/** Columns of a key, from `auth_key k`. */
export const keyColumns = names.map((name) => `k.${name}`).join(", ");
/** Its parameters are {@link keyValues}. */
export const insertKeySql = `INSERT INTO auth_key (${names.join(", ")})
  VALUES (${names.map(() => "?").join(", ")})`;
/** Its parameters are {@link keyValues} with the id at the end. */
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
    key.name ?? null,
    key.disabled ? 1 : 0,
    key.lastUsedAtMs ?? null,
    key.updatedAtMs ?? null,
    key.madeBy?.slot ?? null,
    key.madeBy?.body ?? null,
    key.rotations ? JSON.stringify(key.rotations) : null,
    key.webhookUrl ?? null,
    key.limitReset ?? null,
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
    ...(row.name === null ? {} : { name: String(row.name) }),
    ...(Number(row.disabled) === 0 ? {} : { disabled: true }),
    ...(row.last_used_at_ms === null ? {} : { lastUsedAtMs: Number(row.last_used_at_ms) }),
    ...(row.updated_at_ms === null ? {} : { updatedAtMs: Number(row.updated_at_ms) }),
    ...(row.made_slot === null
      ? {}
      : { madeBy: { slot: String(row.made_slot), body: String(row.made_body) } }),
    ...(row.rotations === null
      ? {}
      : { rotations: JSON.parse(String(row.rotations)) as KeyOperation[] }),
    ...(row.webhook_url === null ? {} : { webhookUrl: String(row.webhook_url) }),
    ...(row.limit_reset === null ? {} : { limitReset: storedLimitReset(row.limit_reset) }),
    revision: row.revision as bigint,
  };
}

/** An account from {@link accountColumns}. */
export function accountOf(row: SqlRow): Account {
  return {
    accountId: String(row.a_id),
    name: String(row.a_name),
    ...(row.a_first_name === null ? {} : { firstName: String(row.a_first_name) }),
    ...(row.a_notes === null ? {} : { notes: String(row.a_notes) }),
    createdAtMs: Number(row.a_created_at_ms),
    requestsPerMinute: Number(row.a_requests_per_minute),
    ...(Number(row.a_rate_is_set) === 0 ? {} : { rateIsSet: true }),
    ...(row.a_suspended_at_ms === null ? {} : { suspendedAtMs: Number(row.a_suspended_at_ms) }),
    ...(row.a_closing_at_ms === null ? {} : { closingAtMs: Number(row.a_closing_at_ms) }),
    ...(row.a_closed_at_ms === null ? {} : { closedAtMs: Number(row.a_closed_at_ms) }),
  };
}

/** A blob's bytes. */
export function bytesOf(value: SqlRow[string] | undefined): Buffer {
  return Buffer.from(value as Uint8Array);
}
