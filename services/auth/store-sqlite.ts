import { ErrorReason, refuse } from "#kit/errors.ts";
import type { SqliteDatabase, SqlRunner } from "#kit/sqlite.ts";
import type { Key } from "./key.ts";
import { revoked, rotated } from "./key.ts";
import { maxKeysPerAccount } from "./limits.ts";
import type { AuthStore, MadeAccount, NewAccount, StoredKey } from "./store.ts";
import {
  accountColumns,
  accountOf,
  authSchema,
  bytesOf,
  insertKeySql,
  keyColumns,
  keyOf,
  keyValues,
  updateKeySql,
} from "./store-sqlite-rows.ts";

/** Accounts and keys in SQLite: a transition is one immediate transaction, so that two processes cannot race either. */
export function createSqliteAuthStore(db: SqliteDatabase): AuthStore {
  return {
    open: async () => db.migrate("auth", authSchema),
    createAccount: (command) => db.write((tx) => createAccount(tx, command)),
    createKey: (key) => db.write((tx) => createKey(tx, key)),
    rotateKey: ({ keyId, secret, graceMs, nowMs }) =>
      db.write((tx) => {
        const next = rotated(mustFindKey(tx, keyId), secret, graceMs, nowMs);
        refuseUsedSecret(tx, secret.sha256);
        return updateKey(tx, next);
      }),
    revokeKey: ({ keyId, nowMs }) =>
      db.write((tx) => {
        const key = mustFindKey(tx, keyId);
        const next = revoked(key, nowMs);
        return next === key ? key : updateKey(tx, next);
      }),
    async findBySecretHash(sha256) {
      // One statement, so that key and revision are of the same moment.
      const row = db.get(
        `SELECT ${keyColumns}, ${accountColumns}, (SELECT revision FROM auth_revision) AS now_revision
         FROM auth_key k JOIN auth_account a ON a.account_id = k.account_id
         WHERE k.secret_sha256 = ? OR k.former_sha256 = ?`,
        sha256,
        sha256,
      );
      if (!row) return undefined;
      return { key: keyOf(row), account: accountOf(row), revision: row.now_revision as bigint };
    },
    async findAccount(accountId) {
      const row = db.get(
        `SELECT ${accountColumns} FROM auth_account a WHERE a.account_id = ?`,
        accountId,
      );
      return row && accountOf(row);
    },
    async listAccounts({ after, limit }) {
      return db
        .all(
          `SELECT ${accountColumns} FROM auth_account a WHERE (a.created_at_ms, a.account_id) > (?, ?)
           ORDER BY a.created_at_ms, a.account_id LIMIT ?`,
          after?.createdAtMs ?? -1,
          after?.accountId ?? "",
          limit,
        )
        .map(accountOf);
    },
    async listKeys(accountId) {
      refuseUnknownAccount(db, accountId);
      return db
        .all(
          `SELECT ${keyColumns} FROM auth_key k WHERE k.account_id = ?
           ORDER BY k.created_at_ms, k.key_id`,
          accountId,
        )
        .map(keyOf);
    },
    revision: async () => revisionOf(db),
    changesSince: async (revision, limit) => changesSince(db, revision, limit),
  };
}

function createAccount(tx: SqlRunner, command: NewAccount): MadeAccount {
  const { account, key, operationId } = command;
  if (operationId !== undefined) {
    const replay = replayOf(tx, operationId, command);
    if (replay) return replay;
  }
  refuseUsedSecret(tx, key.secret.sha256);
  tx.run(
    `INSERT INTO auth_account (account_id, name, created_at_ms, requests_per_minute, operation_id,
       first_key_id, first_secret_sha256) VALUES (?, ?, ?, ?, ?, ?, ?)`,
    account.accountId,
    account.name,
    account.createdAtMs,
    account.requestsPerMinute,
    operationId ?? null,
    key.keyId,
    key.secret.sha256,
  );
  return { account, key: insertKey(tx, key), replayed: false };
}

function replayOf(
  tx: SqlRunner,
  operationId: string,
  command: NewAccount,
): MadeAccount | undefined {
  const row = tx.get(
    `SELECT ${accountColumns}, a.first_key_id, a.first_secret_sha256
     FROM auth_account a WHERE a.operation_id = ?`,
    operationId,
  );
  if (!row) return undefined;
  const account = accountOf(row);
  // The first secret, not the present one: a rotation in between makes no repeat wrong.
  const sameSecret =
    !command.secretBrought || bytesOf(row.first_secret_sha256).equals(command.key.secret.sha256);
  if (account.name !== command.account.name || !sameSecret) refuse(ErrorReason.OPERATION_MISMATCH);
  return { account, key: mustFindKey(tx, String(row.first_key_id)), replayed: true };
}

function createKey(tx: SqlRunner, key: Key): StoredKey {
  refuseUnknownAccount(tx, key.accountId);
  const count = tx.get("SELECT count(*) AS n FROM auth_key WHERE account_id = ?", key.accountId);
  if (Number(count?.n) >= maxKeysPerAccount) {
    refuse(ErrorReason.OPERATION_CONFLICT, {
      message: `An account has at most ${maxKeysPerAccount} keys.`,
    });
  }
  refuseUsedSecret(tx, key.secret.sha256);
  return insertKey(tx, key);
}

function insertKey(tx: SqlRunner, key: Key): StoredKey {
  const stored = { ...key, revision: nextRevision(tx) };
  tx.run(insertKeySql, ...keyValues(stored));
  return stored;
}

function updateKey(tx: SqlRunner, key: Key): StoredKey {
  const stored = { ...key, revision: nextRevision(tx) };
  const [keyId, ...rest] = keyValues(stored);
  tx.run(updateKeySql, ...rest, keyId ?? null);
  return stored;
}

function mustFindKey(runner: SqlRunner, keyId: string): StoredKey {
  const row = runner.get(`SELECT ${keyColumns} FROM auth_key k WHERE k.key_id = ?`, keyId);
  return row ? keyOf(row) : refuse(ErrorReason.KEY_NOT_FOUND);
}

function refuseUnknownAccount(runner: SqlRunner, accountId: string): void {
  const row = runner.get("SELECT 1 AS one FROM auth_account WHERE account_id = ?", accountId);
  if (!row) refuse(ErrorReason.ACCOUNT_NOT_FOUND);
}

function refuseUsedSecret(tx: SqlRunner, sha256: Uint8Array): void {
  const row = tx.get(
    "SELECT 1 AS one FROM auth_key WHERE secret_sha256 = ? OR former_sha256 = ?",
    sha256,
    sha256,
  );
  if (row) {
    refuse(ErrorReason.OPERATION_CONFLICT, { message: "The secret belongs to another key." });
  }
}

function changesSince(db: SqlRunner, revision: bigint, limit: number) {
  // The revision first: a change that another process makes in between is told now and again, never not at all.
  const now = revisionOf(db);
  if (revision > now) return undefined;
  if (revision === now) return { revision: now, keyIds: [] };
  const rows = db.all(
    "SELECT key_id FROM auth_key WHERE revision > ? LIMIT ?",
    revision,
    limit + 1,
  );
  if (rows.length > limit) return undefined;
  return { revision: now, keyIds: rows.map((row) => String(row.key_id)) };
}

function revisionOf(runner: SqlRunner): bigint {
  return runner.get("SELECT revision FROM auth_revision")?.revision as bigint;
}

function nextRevision(tx: SqlRunner): bigint {
  tx.run("UPDATE auth_revision SET revision = revision + 1");
  return revisionOf(tx);
}
