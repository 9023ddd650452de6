// Keeps webhooks and secrets as documents, in SQLite or MongoDB. Earlier releases had tables of their own, which the SQL turns
// into documents.

import { documentsIn, openDocuments } from "#kit/documents/open.ts";
import type { Component, DocumentsSchema } from "#kit/documents/schema.ts";
import type { Database } from "#kit/store/database.ts";
import type { WebhookSecrets } from "./sign.ts";
import { latestWebhookDue, toldUntil, type WebhookStore } from "./store.ts";
import { hostOf, stepWebhook, type Webhook } from "./webhook.ts";

/** A webhook with the host of its URL. The host is absent in documents that an earlier version wrote. */
type KeptWebhook = Webhook & { host?: string };

const indexes = {
  due: { key: { accountId: 1, dueAt: 1 }, where: { dueAt: "there" } },
  put_off: { key: { dueAt: 1 }, where: { dueAt: "there" } },
  host: { key: { accountId: 1, host: 1, dueAt: 1 }, where: { dueAt: "there" } },
  list: { key: { accountId: 1, createdAt: 1, webhookId: 1 } },
  list_key: { key: { keyId: 1, createdAt: 1, webhookId: 1 }, where: { keyId: "there" } },
  type: { key: { accountId: 1, type: 1, createdAt: 1, webhookId: 1 } },
  // Webhooks of jobs whose bodies are not erased yet.
  told: {
    key: { expiresAt: 1, jobId: 1 },
    where: { body: "not empty", jobId: "not empty", expiresAt: "there" },
  },
  expired: { key: { expiresAt: 1 }, where: { expiresAt: "there" } },
} as const;

const webhookSchema: DocumentsSchema<KeptWebhook, keyof typeof indexes> = {
  name: "media_webhook",
  id: "webhookId",
  columns: {
    ...{
      accountId: "text",
      keyId: "text",
      jobId: "text",
      type: "text",
      host: "text",
      body: "text",
    },
    ...{ createdAt: "integer", dueAt: "integer", expiresAt: "integer" },
  },
  indexes,
  compare: { version: "v" },
};

const secretsSchema: DocumentsSchema<WebhookSecrets, never> = {
  name: "media_webhook_secret",
  id: "accountId",
  columns: {},
  indexes: {},
  compare: { fields: ["current"] },
};

const tables = [
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
  // Rows become documents. The old rows are dropped at once, because data that is erased from now on must not remain there.
  `ALTER TABLE media_webhook RENAME TO media_webhook_rows;
   CREATE TABLE media_webhook (
     webhook_id TEXT PRIMARY KEY,
     account_id TEXT NOT NULL,
     key_id TEXT,
     job_id TEXT NOT NULL,
     type TEXT NOT NULL,
     host TEXT,
     created_at INTEGER NOT NULL,
     due_at INTEGER,
     expires_at INTEGER,
     doc TEXT NOT NULL,
     body TEXT NOT NULL
   ) STRICT;
   INSERT INTO media_webhook SELECT webhook_id, account_id, key_id, job_id, type, host, created_at, due_at, expires_at,
     json_patch('{}', json_object('url', url, 'state', state, 'attempts', attempts, 'giveUpAt', give_up_at,
       'lastAttemptAt', last_attempt_at, 'lastStatus', last_status, 'lastError', last_error)), body
     FROM media_webhook_rows;
   DROP TABLE media_webhook_rows;
   ALTER TABLE media_webhook_secret RENAME TO media_webhook_secret_rows;
   CREATE TABLE media_webhook_secret (account_id TEXT PRIMARY KEY, doc TEXT NOT NULL) STRICT, WITHOUT ROWID;
   INSERT INTO media_webhook_secret SELECT account_id,
     json_patch('{}', json_object('current', current, 'createdAt', created_at, 'operation', operation,
       'previous', CASE WHEN previous IS NOT NULL THEN json_object('secret', previous, 'until', previous_until) END))
     FROM media_webhook_secret_rows;
   DROP TABLE media_webhook_secret_rows;`,
];

/** The tables and documents of webhooks. */
export const webhooksComponent: Component = {
  name: "media_webhooks",
  kinds: [webhookSchema, secretsSchema],
  tables,
};

/** The webhooks in a process's database. */
export function createWebhookStore(database: Database): WebhookStore {
  const webhooks = documentsIn(database, webhookSchema);
  const secrets = documentsIn(database, secretsSchema);
  return {
    open: () => openDocuments(database, webhooksComponent),
    insert: async (webhook) => {
      await webhooks.insert({ ...webhook, host: hostOf(webhook) });
    },
    async apply(webhookId, command) {
      const after = await webhooks.change(webhookId, (before) => {
        const next = stepWebhook(before, command);
        return next && { ...next, host: hostOf(next) };
      });
      return after && webhookOf(after);
    },
    async nextDue(accountId, now) {
      const found = await webhooks.firstOfNext("due", { behind: accountId, upTo: now });
      return found && webhookOf(found);
    },
    async firstOfNextHost(accountId, behind) {
      const stretch = { of: [accountId], behind: [behind], limit: 1, without: ["body"] } as const;
      const [first] = await webhooks.seek("host", stretch);
      const { webhookId, host = "", dueAt = 0 } = first ?? {};
      return webhookId === undefined ? undefined : { host, webhookId, dueAt };
    },
    waiting: (now) => webhooks.count("put_off", { upTo: latestWebhookDue(now) }),
    async find(webhookId) {
      const found = await webhooks.find(webhookId);
      return found && webhookOf(found);
    },
    async list({ accountId, keyId, after, limit }) {
      const page = {
        ...(after ? { behind: [after.createdAt, after.webhookId] } : {}),
        ...{ newestFirst: true, limit, without: ["body"] as const },
      };
      const found =
        keyId === undefined
          ? webhooks.seek("list", { of: [accountId], ...page })
          : webhooks.seek("list_key", { of: [keyId], and: { accountId }, ...page });
      return (await found).map(webhookOf);
    },
    async trim({ accountId, type, newest, limit }) {
      const surplus = { of: [accountId, type], newestFirst: true, skip: newest, limit };
      await webhooks.removeSome("type", surplus);
    },
    async clear(now, limit) {
      // A webhook that is retried meanwhile has no end, and stays as it is.
      await webhooks.removeSome("expired", { upTo: now, limit });
      await webhooks.setSome("told", { upTo: toldUntil(now), limit }, { body: "" });
    },
    async eraseAccount(accountId, limit) {
      await secrets.remove(accountId);
      return webhooks.removeSome("list", { of: [accountId], limit });
    },
    async bringForward(now, at) {
      await webhooks.setSome("put_off", { behind: [latestWebhookDue(now)] }, { dueAt: at });
    },
    findSecrets: (accountId) => secrets.find(accountId),
    async insertSecrets(first) {
      await secrets.insert(first);
      return (await secrets.find(first.accountId)) ?? first;
    },
    async replaceSecrets(current, next) {
      const { accountId } = next;
      const isCurrent = (one: WebhookSecrets) => one.current === current;
      if (await secrets.change(accountId, (one) => (isCurrent(one) ? next : undefined)))
        return true;
      // The answer to the first try may have been lost.
      return (await secrets.find(accountId))?.current === next.current;
    },
  };
}

function webhookOf<T extends { host?: string }>({ host: _host, ...webhook }: T): Omit<T, "host"> {
  return webhook;
}
