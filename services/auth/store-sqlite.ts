// Reads and changes accounts and keys in SQLite. `store-mongo.ts` is the other store.

import { maxKeysPerAccount } from "#common/words/request-bounds.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { SqliteDatabase, SqlRunner } from "#kit/store/sqlite.ts";
import { type Account, nameKeyOf } from "./account.ts";
import { isSameOperation, type Key } from "./key.ts";
import {
  type AuthReads,
  type AuthStore,
  beyond,
  type MadeAccount,
  type NewAccount,
  type StoredKey,
} from "./store.ts";
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
import {
  createTransitions,
  refuseMoreKeys,
  refuseOtherAccount,
  refuseUsedSecret,
} from "./store-transitions.ts";

/** Accounts and keys in SQLite. A transition is one immediate transaction, so that two processes cannot race. */
export function createSqliteAuthStore(db: SqliteDatabase): AuthStore {
  return {
    open: async () => db.migrate("auth", authSchema),
    createAccount: (command) => db.write((tx) => createAccount(tx, command)),
    createKey: (key) => db.write((tx) => createKey(tx, key)),
    ...createTransitions({
      changeKey: (keyId, next) =>
        db.write((tx) => {
          const key = mustFindKey(tx, keyId);
          const changed = next(key, false);
          if (changed === key) return key;
          if (changed.secret !== key.secret) refuseSecretInUse(tx, changed.secret.sha256);
          return updateKey(tx, changed);
        }),
      changeAccount: (accountId, next) => db.write((tx) => changeAccount(tx, accountId, next)),
    }),
    noteUses: (uses) =>
      db.write((tx) => {
        for (const { keyId, atMs } of uses) {
          tx.run(
            "UPDATE auth_key SET last_used_at_ms = max(coalesce(last_used_at_ms, 0), ?) WHERE key_id = ?",
            atMs,
            keyId,
          );
        }
      }),
    ...createReads(db),
  };
}

/** The part of the store that changes nothing. */
function createReads(db: SqliteDatabase): AuthReads {
  return {
    closingAccounts: async (limit) =>
      db
        .all(
          `SELECT ${accountColumns} FROM auth_account a WHERE a.closing_at_ms IS NOT NULL
           AND a.closed_at_ms IS NULL ORDER BY a.closing_at_ms LIMIT ?`,
          limit,
        )
        .map(accountOf),
    findKey: async (keyId) => findKey(db, "key_id", keyId),
    findKeyMadeBy: async (slot) => findKey(db, "made_slot", slot),
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
      return findAccount(db, accountId);
    },
    findAccounts: async (accountIds) => {
      const sql = `SELECT ${accountColumns} FROM auth_account a
        WHERE a.account_id IN (SELECT value FROM json_each(?))`;
      return db.all(sql, JSON.stringify(accountIds)).map(accountOf);
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
    searchAccounts: async ({ by, prefix, after, limit }) => {
      const [column, begin, from] =
        by === "id"
          ? ["a.account_id", "a.account_id > ?", [after?.accountId ?? ""]]
          : [
              "a.name_key",
              "(a.name_key, a.account_id) > (?, ?)",
              [after?.nameKey ?? "", after?.accountId ?? ""],
            ];
      const sql = `SELECT ${accountColumns} FROM auth_account a WHERE ${column} >= ? AND ${column} < ?
        AND ${begin} ORDER BY ${column}, a.account_id LIMIT ?`;
      return db.all(sql, prefix, beyond(prefix), ...from, limit).map(accountOf);
    },
    listAllKeys: async ({ prefix, after, limit }) => {
      if (prefix !== undefined) {
        const sql = `SELECT ${keyColumns} FROM auth_key k WHERE k.key_id >= ? AND k.key_id < ?
          AND k.key_id > ? ORDER BY k.key_id LIMIT ?`;
        return db.all(sql, prefix, beyond(prefix), after?.keyId ?? "", limit).map(keyOf);
      }
      const sql = `SELECT ${keyColumns} FROM auth_key k WHERE (k.created_at_ms, k.key_id) > (?, ?)
        ORDER BY k.created_at_ms, k.key_id LIMIT ?`;
      return db.all(sql, after?.createdAtMs ?? -1, after?.keyId ?? "", limit).map(keyOf);
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
  refuseSecretInUse(tx, key.secret.sha256);
  tx.run(
    `INSERT INTO auth_account (account_id, name, created_at_ms, requests_per_minute, operation_id,
       first_key_id, first_secret_sha256, name_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    account.accountId,
    account.name,
    account.createdAtMs,
    account.requestsPerMinute,
    operationId ?? null,
    key.keyId,
    key.secret.sha256,
    nameKeyOf(account.name),
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
  const first = bytesOf(row.first_secret_sha256);
  refuseOtherAccount(command, account, (sha256) => first.equals(sha256));
  return { account, key: mustFindKey(tx, String(row.first_key_id)), replayed: true };
}

function createKey(tx: SqlRunner, key: Key): StoredKey {
  const made = key.madeBy && findKey(tx, "made_slot", key.madeBy.slot);
  if (made && key.madeBy && isSameOperation(made.madeBy, key.madeBy)) return made;
  refuseUnknownAccount(tx, key.accountId);
  const count = tx.get("SELECT count(*) AS n FROM auth_key WHERE account_id = ?", key.accountId);
  if (Number(count?.n) >= maxKeysPerAccount) refuseMoreKeys();
  refuseSecretInUse(tx, key.secret.sha256);
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
  return findKey(runner, "key_id", keyId) ?? refuse(ErrorReason.KEY_NOT_FOUND);
}

function findKey(
  runner: SqlRunner,
  by: "key_id" | "made_slot",
  value: string,
): StoredKey | undefined {
  const row = runner.get(`SELECT ${keyColumns} FROM auth_key k WHERE k.${by} = ?`, value);
  return row && keyOf(row);
}

function findAccount(runner: SqlRunner, accountId: string): Account | undefined {
  const row = runner.get(
    `SELECT ${accountColumns} FROM auth_account a WHERE a.account_id = ?`,
    accountId,
  );
  return row && accountOf(row);
}

/** Changes an account. All of its keys get one new revision, so that watchers see them as changed. */
function changeAccount(
  tx: SqlRunner,
  accountId: string,
  change: (account: Account) => Account,
): Account {
  const account = findAccount(tx, accountId) ?? refuse(ErrorReason.ACCOUNT_NOT_FOUND);
  const next = change(account);
  if (next === account) return account;
  tx.run(
    `UPDATE auth_account SET name = ?, name_key = ?, suspended_at_ms = ?, closing_at_ms = ?,
       closed_at_ms = ?, requests_per_minute = ?, rate_is_set = ?, first_name = ?, notes = ?
       WHERE account_id = ?`,
    next.name,
    nameKeyOf(next.name),
    next.suspendedAtMs ?? null,
    next.closingAtMs ?? null,
    next.closedAtMs ?? null,
    next.requestsPerMinute,
    next.rateIsSet ? 1 : 0,
    next.firstName ?? null,
    next.notes ?? null,
    accountId,
  );
  const revision = nextRevision(tx);
  tx.run("UPDATE auth_key SET revision = ? WHERE account_id = ?", revision, accountId);
  return next;
}

function refuseUnknownAccount(runner: SqlRunner, accountId: string): void {
  const row = runner.get("SELECT 1 AS one FROM auth_account WHERE account_id = ?", accountId);
  if (!row) refuse(ErrorReason.ACCOUNT_NOT_FOUND);
}

function refuseSecretInUse(tx: SqlRunner, sha256: Uint8Array): void {
  const row = tx.get(
    "SELECT 1 AS one FROM auth_key WHERE secret_sha256 = ? OR former_sha256 = ?",
    sha256,
    sha256,
  );
  if (row) refuseUsedSecret();
}

function changesSince(db: SqlRunner, revision: bigint, limit: number) {
  // Reads the revision first. A change that another process makes in between may be answered twice, but is not missed.
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
