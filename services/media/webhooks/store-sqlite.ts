import type { SqliteDatabase, SqlRow, SqlRunner, SqlValue } from "#kit/store/sqlite.ts";
import type { WebhookSecrets } from "./sign.ts";
import { latestWebhookDue, toldUntil, type WebhookStore } from "./store.ts";
import { hostOf, type ListedWebhook, stepWebhook, type Webhook } from "./webhook.ts";

/** Tables, step by step; a step that was shipped is never changed. */
const schema: readonly string[] = [
  `CREATE TABLE media_webhook (
     webhook_id TEXT PRIMARY KEY,
     account_id TEXT NOT NULL,
     job_id TEXT NOT NULL,
     type TEXT NOT NULL,
     url TEXT NOT NULL,
     body TEXT NOT NULL,
     created_at INTEGER NOT NULL,
     state TEXT NOT NULL,
     attempts INTEGER NOT NULL,
     due_at INTEGER,
     give_up_at INTEGER NOT NULL,
     last_attempt_at INTEGER,
     last_status INTEGER,
     last_error TEXT,
     expires_at INTEGER
   ) STRICT;
   CREATE INDEX media_webhook_due ON media_webhook (account_id, due_at) WHERE due_at IS NOT NULL;
   CREATE INDEX media_webhook_put_off ON media_webhook (due_at) WHERE due_at IS NOT NULL;
   CREATE INDEX media_webhook_list ON media_webhook (account_id, created_at, webhook_id);
   CREATE INDEX media_webhook_expired ON media_webhook (expires_at) WHERE expires_at IS NOT NULL;
   CREATE TABLE media_webhook_secret (
     account_id TEXT PRIMARY KEY,
     current TEXT NOT NULL,
     created_at INTEGER NOT NULL,
     previous TEXT,
     previous_until INTEGER,
     operation TEXT
   ) STRICT, WITHOUT ROWID;`,
  `ALTER TABLE media_webhook ADD COLUMN key_id TEXT;
   ALTER TABLE media_webhook ADD COLUMN host TEXT;
   CREATE INDEX media_webhook_list_key ON media_webhook (key_id, created_at, webhook_id) WHERE key_id IS NOT NULL;
   CREATE INDEX media_webhook_host ON media_webhook (account_id, host, due_at)
     WHERE due_at IS NOT NULL AND host IS NOT NULL;`,
  `CREATE INDEX media_webhook_type ON media_webhook (account_id, type, created_at, webhook_id);
   CREATE INDEX media_webhook_told ON media_webhook (expires_at)
     WHERE expires_at IS NOT NULL AND body <> '' AND job_id <> '';`,
];

/** Webhooks in the process's SQLite file. */
export function createSqliteWebhookStore(db: SqliteDatabase): WebhookStore {
  return {
    async open() {
      db.migrate("media_webhooks", schema);
    },
    insert: (webhook) =>
      db.write((tx) => void tx.run(insertSql, ...columns.map(([, value]) => value(webhook)))),
    apply: (webhookId, command) =>
      db.write((tx) => {
        const webhook = read(tx, webhookId);
        const next = webhook && stepWebhook(webhook, command);
        if (next) tx.run(updateSql, ...columns.map(([, value]) => value(next)), webhookId);
        return next;
      }),
    async nextDue(accountId, now) {
      // One seek for each account with a webhook that is pending: SQLite does not skip within an index by itself.
      let after = accountId;
      for (;;) {
        const first = db.get(firstPendingSql, after);
        if (!first) return undefined;
        if (Number(first.due_at) <= now) return read(db, String(first.webhook_id));
        after = String(first.account_id);
      }
    },
    async firstOfNextHost(accountId, host) {
      const row = db.get(nextHostSql, accountId, host);
      if (!row) return undefined;
      const { webhook_id, due_at } = row;
      return { host: String(row.host), webhookId: String(webhook_id), dueAt: Number(due_at) };
    },
    find: async (webhookId) => read(db, webhookId),
    async list({ accountId, keyId, after, limit }) {
      const at = after ?? { createdAt: Number.MAX_SAFE_INTEGER, webhookId: "" };
      const place = [accountId, at.createdAt, at.webhookId] as const;
      const rows =
        keyId === undefined
          ? db.all(listSql, ...place, limit)
          : db.all(listOfKeySql, keyId, ...place, limit);
      return rows.map(toListed);
    },
    trim: ({ accountId, type, newest, limit }) =>
      db.write((tx) => void tx.run(trimSql, accountId, type, limit, newest)),
    clear: (now, limit) =>
      db.write((tx) => {
        tx.run(clearSql, now, limit);
        tx.run(eraseBodiesSql, toldUntil(now), limit);
      }),
    eraseAccount: (accountId, limit) =>
      db.write((tx) => {
        tx.run("DELETE FROM media_webhook_secret WHERE account_id = ?", accountId);
        return tx.run(eraseSql, accountId, limit);
      }),
    async bringForward(now, at) {
      const after = latestWebhookDue(now);
      if (!db.get(putOffSql, after)) return;
      await db.write((tx) => tx.run(bringForwardSql, at, after));
    },
    findSecrets: async (accountId) => readSecrets(db, accountId),
    insertSecrets: (secrets) =>
      db.write((tx) => {
        const { accountId, current, createdAt } = secrets;
        tx.run(insertSecretsSql, accountId, current, createdAt);
        return readSecrets(tx, accountId) ?? secrets;
      }),
    replaceSecrets: (current, secrets) =>
      db.write((tx) => {
        const { previous, accountId } = secrets;
        const before = [previous?.secret ?? null, previous?.until ?? null];
        const now = [secrets.current, secrets.createdAt, ...before, secrets.operation ?? null];
        return tx.run(replaceSecretsSql, ...now, accountId, current) === 1;
      }),
  };
}

/** A column with what a webhook has there. */
const columns: readonly (readonly [name: string, value: (webhook: Webhook) => SqlValue])[] = [
  ["webhook_id", (one) => one.webhookId],
  ["account_id", (one) => one.accountId],
  ["key_id", (one) => one.keyId ?? null],
  ["job_id", (one) => one.jobId],
  ["type", (one) => one.type],
  ["url", (one) => one.url],
  ["host", hostOf],
  ["body", (one) => one.body],
  ["created_at", (one) => one.createdAt],
  ["state", (one) => one.state],
  ["attempts", (one) => one.attempts],
  ["due_at", (one) => one.dueAt ?? null],
  ["give_up_at", (one) => one.giveUpAt],
  ["last_attempt_at", (one) => one.lastAttemptAt ?? null],
  ["last_status", (one) => one.lastStatus ?? null],
  ["last_error", (one) => one.lastError ?? null],
  ["expires_at", (one) => one.expiresAt ?? null],
];

const insertSql = `INSERT INTO media_webhook (${columns.map(([name]) => name).join(", ")})
  VALUES (${columns.map(() => "?").join(", ")}) ON CONFLICT DO NOTHING`;
const updateSql = `UPDATE media_webhook SET ${columns.map(([name]) => `${name} = ?`).join(", ")}
  WHERE webhook_id = ?`;
const firstPendingSql = `SELECT webhook_id, account_id, due_at FROM media_webhook
  WHERE due_at IS NOT NULL AND account_id > ? ORDER BY account_id, due_at LIMIT 1`;
const listedColumns = columns.flatMap(([name]) => (name === "body" ? [] : name)).join(", ");
const listSql = `SELECT ${listedColumns} FROM media_webhook WHERE account_id = ? AND (created_at, webhook_id) < (?, ?)
  ORDER BY created_at DESC, webhook_id DESC LIMIT ?`;
const listOfKeySql = `SELECT ${listedColumns} FROM media_webhook
  WHERE key_id = ? AND account_id = ? AND (created_at, webhook_id) < (?, ?)
  ORDER BY created_at DESC, webhook_id DESC LIMIT ?`;
const nextHostSql = `SELECT host, webhook_id, due_at FROM media_webhook
  WHERE account_id = ? AND host > ? AND due_at IS NOT NULL ORDER BY host, due_at LIMIT 1`;
const eraseSql = `DELETE FROM media_webhook WHERE webhook_id IN
  (SELECT webhook_id FROM media_webhook WHERE account_id = ? LIMIT ?)`;
const clearSql = `DELETE FROM media_webhook WHERE webhook_id IN
  (SELECT webhook_id FROM media_webhook WHERE expires_at <= ? LIMIT ?)`;
const eraseBodiesSql = `UPDATE media_webhook SET body = '' WHERE webhook_id IN
  (SELECT webhook_id FROM media_webhook INDEXED BY media_webhook_told
    WHERE expires_at <= ? AND expires_at IS NOT NULL AND body <> '' AND job_id <> '' LIMIT ?)`;
const trimSql = `DELETE FROM media_webhook WHERE webhook_id IN
  (SELECT webhook_id FROM media_webhook WHERE account_id = ? AND type = ?
    ORDER BY created_at DESC, webhook_id DESC LIMIT ? OFFSET ?)`;
const putOffSql = "SELECT 1 FROM media_webhook WHERE due_at > ? LIMIT 1";
const bringForwardSql = "UPDATE media_webhook SET due_at = ? WHERE due_at > ?";
const insertSecretsSql = `INSERT INTO media_webhook_secret (account_id, current, created_at)
  VALUES (?, ?, ?) ON CONFLICT DO NOTHING`;
const replaceSecretsSql = `UPDATE media_webhook_secret
  SET current = ?, created_at = ?, previous = ?, previous_until = ?, operation = ?
  WHERE account_id = ? AND current = ?`;

function read(tx: SqlRunner, webhookId: string): Webhook | undefined {
  const row = tx.get("SELECT * FROM media_webhook WHERE webhook_id = ?", webhookId);
  return row && toWebhook(row);
}

function toWebhook(row: SqlRow): Webhook {
  return { ...toListed(row), body: String(row.body) };
}

function toListed(row: SqlRow): ListedWebhook {
  return {
    webhookId: String(row.webhook_id),
    accountId: String(row.account_id),
    ...(typeof row.key_id === "string" ? { keyId: row.key_id } : {}),
    jobId: String(row.job_id),
    type: row.type as Webhook["type"],
    url: String(row.url),
    createdAt: Number(row.created_at),
    state: row.state as Webhook["state"],
    attempts: Number(row.attempts),
    dueAt: number(row.due_at),
    giveUpAt: Number(row.give_up_at),
    lastAttemptAt: number(row.last_attempt_at),
    lastStatus: number(row.last_status),
    lastError: typeof row.last_error === "string" ? row.last_error : undefined,
    expiresAt: number(row.expires_at),
  };
}

function number(cell: SqlRow[string] | undefined): number | undefined {
  return cell === null || cell === undefined ? undefined : Number(cell);
}

function readSecrets(tx: SqlRunner, accountId: string): WebhookSecrets | undefined {
  const row = tx.get("SELECT * FROM media_webhook_secret WHERE account_id = ?", accountId);
  if (!row) return undefined;
  const previous =
    typeof row.previous === "string"
      ? { secret: row.previous, until: Number(row.previous_until) }
      : undefined;
  const operation = typeof row.operation === "string" ? row.operation : undefined;
  const current = String(row.current);
  return { accountId, current, createdAt: Number(row.created_at), previous, operation };
}
