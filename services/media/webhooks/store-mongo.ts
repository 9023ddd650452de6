import type { Collection, Document, Filter } from "mongodb";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { awayRefusal, isDuplicate } from "#kit/store/mongo/errors.ts";
import { indexStep, type MongoSchema, migrate } from "#kit/store/mongo/migrate.ts";
import { maxWebhookRounds } from "./limits.ts";
import type { WebhookSecrets } from "./sign.ts";
import { latestWebhookDue, toldUntil, type WebhookStore, type WebhooksQuery } from "./store.ts";
import {
  hostOf,
  type ListedWebhook,
  stepWebhook,
  type Webhook,
  type WebhookCommand,
} from "./webhook.ts";

/** A webhook; each transition is one write of it, where it still has the version that was read. */
interface WebhookDocument extends Omit<Webhook, "webhookId"> {
  /** The webhook id. */
  _id: string;
  /** Rises with every change. */
  v: number;
  /** Of its URL; absent from what an earlier version wrote. */
  host?: string;
}

interface SecretsDocument extends Omit<WebhookSecrets, "accountId"> {
  /** The account id. */
  _id: string;
}

const collections = { webhooks: "media_webhook", secrets: "media_webhook_secret" } as const;

/** Of a job, and not erased yet. */
const withBody = { body: { $gt: "" }, jobId: { $gt: "" } } as const;

const indexes: MongoSchema["indexes"] = {
  [collections.webhooks]: [
    { name: "due", key: { accountId: 1, dueAt: 1 }, partial: { dueAt: { $exists: true } } },
    { name: "put_off", key: { dueAt: 1 }, partial: { dueAt: { $exists: true } } },
    {
      name: "host",
      key: { accountId: 1, host: 1, dueAt: 1 },
      partial: { dueAt: { $exists: true } },
    },
    { name: "list", key: { accountId: 1, createdAt: 1, _id: 1 } },
    {
      name: "list_key",
      key: { keyId: 1, createdAt: 1, _id: 1 },
      partial: { keyId: { $exists: true } },
    },
    { name: "type", key: { accountId: 1, type: 1, createdAt: 1, _id: 1 } },
    {
      name: "told",
      key: { expiresAt: 1, jobId: 1 },
      partial: { ...withBody, expiresAt: { $exists: true } },
    },
    { name: "expired", key: { expiresAt: 1 }, partial: { expiresAt: { $exists: true } } },
  ],
  [collections.secrets]: [],
};

/** What webhooks keep in MongoDB. */
export const webhooksMongoSchema: MongoSchema = {
  component: "media_webhooks",
  indexes,
  steps: [indexStep(indexes)],
};

/** What is undefined is not stored. */
const sparsely = { ignoreUndefined: true } as const;

/** Webhooks in MongoDB. */
export function createMongoWebhookStore(db: MongoDatabase): WebhookStore {
  const webhooks = db.collection<WebhookDocument>(collections.webhooks);
  return {
    open: () => migrate(db, [webhooksMongoSchema]),
    insert: (webhook) => db.attempt(() => insertNew(webhooks, documentOf(webhook, 1))),
    apply: (webhookId, command) => db.attempt(() => apply(webhooks, webhookId, command)),
    nextDue: (accountId, now) =>
      db.attempt(async () => {
        const [doc] = await webhooks
          .find({ accountId: { $gt: accountId }, dueAt: { $lte: now } })
          .sort({ accountId: 1, dueAt: 1 })
          .limit(1)
          .toArray();
        return doc && webhookOf(doc);
      }),
    firstOfNextHost: (accountId, host) =>
      db.attempt(async () => {
        const [doc] = await webhooks
          .find({ accountId, host: { $gt: host }, dueAt: { $exists: true } })
          .project<{ _id: string; host: string; dueAt: number }>({ host: 1, dueAt: 1 })
          .sort({ host: 1, dueAt: 1 })
          .limit(1)
          .toArray();
        return doc && { host: doc.host, webhookId: doc._id, dueAt: doc.dueAt };
      }),
    find: (webhookId) =>
      db.attempt(async () => {
        const doc = await webhooks.findOne({ _id: webhookId });
        return doc ? webhookOf(doc) : undefined;
      }),
    list: (query) => db.attempt(() => list(webhooks, query)),
    trim: ({ accountId, type, newest, limit }) =>
      db.attempt(async () => {
        const surplus = await webhooks
          .find({ accountId, type }, { projection: { _id: 1 } })
          .sort({ createdAt: -1, _id: -1 })
          .skip(newest)
          .limit(limit)
          .toArray();
        if (surplus.length > 0)
          await webhooks.deleteMany({ _id: { $in: surplus.map(({ _id }) => _id) } });
      }),
    clear: (now, limit) =>
      db.attempt(async () => {
        const idsOf = async (which: Filter<WebhookDocument>) => {
          const found = webhooks.find(which, { projection: { _id: 1 } }).limit(limit);
          return { _id: { $in: (await found.toArray()).map(({ _id }) => _id) } };
        };
        // One that is retried meanwhile has no end, and stays as it is.
        const over = { expiresAt: { $lte: now } };
        await webhooks.deleteMany({ ...(await idsOf(over)), ...over });
        const told = { expiresAt: { $lte: toldUntil(now) } };
        const some = await idsOf({ ...told, ...withBody });
        if (some._id.$in.length === 0) return;
        await webhooks.updateMany({ ...some, ...told }, { $set: { body: "" }, $inc: { v: 1 } });
      }),
    eraseAccount: (accountId, limit) =>
      db.attempt(async () => {
        await db.collection<SecretsDocument>(collections.secrets).deleteOne({ _id: accountId });
        const found = await webhooks
          .find({ accountId }, { projection: { _id: 1 } })
          .limit(limit)
          .toArray();
        if (found.length === 0) return 0;
        await webhooks.deleteMany({ _id: { $in: found.map(({ _id }) => _id) } });
        return found.length;
      }),
    bringForward: (now, at) =>
      db.attempt(async () => {
        await webhooks.updateMany(
          { dueAt: { $gt: latestWebhookDue(now) } },
          { $set: { dueAt: at }, $inc: { v: 1 } },
        );
      }),
    ...createSecretsStore(db),
  };
}

type SecretsStore = Pick<WebhookStore, "findSecrets" | "insertSecrets" | "replaceSecrets">;

/** The secrets of accounts, with which webhooks are signed. */
function createSecretsStore(db: MongoDatabase): SecretsStore {
  const secrets = db.collection<SecretsDocument>(collections.secrets);
  const findSecrets = async (accountId: string): Promise<WebhookSecrets | undefined> => {
    const doc = await secrets.findOne({ _id: accountId });
    if (!doc) return undefined;
    const { current, createdAt, previous, operation } = doc;
    return { accountId, current, createdAt, previous, operation };
  };
  return {
    findSecrets: (accountId) => db.attempt(() => findSecrets(accountId)),
    insertSecrets: (first) =>
      db.attempt(async () => {
        const { accountId, ...rest } = first;
        await insertNew(secrets, { _id: accountId, ...rest });
        return (await findSecrets(accountId)) ?? first;
      }),
    replaceSecrets: (current, next) =>
      db.attempt(async () => {
        const { accountId, ...rest } = next;
        const { matchedCount } = await secrets.replaceOne(
          { _id: accountId, current },
          rest,
          sparsely,
        );
        if (matchedCount === 1) return true;
        // The answer to the first time may have been lost.
        return (await findSecrets(accountId))?.current === next.current;
      }),
  };
}

async function insertNew<T extends Document>(
  collection: Collection<T>,
  doc: Parameters<Collection<T>["insertOne"]>[0],
): Promise<void> {
  try {
    await collection.insertOne(doc, sparsely);
  } catch (error) {
    if (!isDuplicate(error)) throw error;
  }
}

/** Where an answer was lost, the next look finds the change made: an attempt then counts as lost, and another follows. */
async function apply(
  webhooks: Collection<WebhookDocument>,
  webhookId: string,
  command: WebhookCommand,
): Promise<Webhook | undefined> {
  for (let round = 0; round < maxWebhookRounds; round++) {
    const doc = await webhooks.findOne({ _id: webhookId });
    const next = doc && stepWebhook(webhookOf(doc), command);
    if (!next) return undefined;
    const { v } = doc;
    const { _id, ...fields } = documentOf(next, v + 1);
    const { matchedCount } = await webhooks.replaceOne({ _id, v }, fields, sparsely);
    if (matchedCount === 1) return next;
  }
  throw awayRefusal(new Error("a webhook does not come to rest"));
}

async function list(
  webhooks: Collection<WebhookDocument>,
  { accountId, keyId, after, limit }: WebhooksQuery,
): Promise<ListedWebhook[]> {
  const filter: Filter<WebhookDocument> = {
    accountId,
    ...(keyId === undefined ? {} : { keyId }),
    ...(after
      ? {
          createdAt: { $lte: after.createdAt },
          $or: [{ createdAt: { $lt: after.createdAt } }, { _id: { $lt: after.webhookId } }],
        }
      : {}),
  };
  const docs = await webhooks
    .find(filter)
    .project<Omit<WebhookDocument, "body">>({ body: 0 })
    .sort({ createdAt: -1, _id: -1 })
    .limit(limit)
    .toArray();
  return docs.map(({ _id, v: _v, host: _host, ...fields }) => ({ webhookId: _id, ...fields }));
}

function documentOf({ webhookId, ...fields }: Webhook, v: number): WebhookDocument {
  return { _id: webhookId, v, host: hostOf(fields), ...fields };
}

function webhookOf({ _id, v: _v, host: _host, ...fields }: WebhookDocument): Webhook {
  return { webhookId: _id, ...fields };
}
