import type { Collection, Filter } from "mongodb";
import type { MongoDatabase } from "#kit/mongo/connect.ts";
import { isDuplicate } from "#kit/mongo/errors.ts";
import { migrate } from "#kit/mongo/migrate.ts";
import { maxOpenTries } from "./limits.ts";
import type { Closer, Closing, Intent, UsageStore } from "./store.ts";
import { closingFields, documentOf, isClosedAs, keyedOf, recordOf } from "./store-mongo-docs.ts";
import { createMongoMakers } from "./store-mongo-makers.ts";
import { textCollections, textMongoSchema, type UsageDocument } from "./store-mongo-schema.ts";

/** The store in MongoDB: a request is a document, and each transition a write of it under a condition. */
export function createMongoUsageStore(db: MongoDatabase): UsageStore {
  const usage = db.collection<UsageDocument>(textCollections.usage);
  const makers = createMongoMakers(db);
  /** Changes one document that fits; all of these may be made twice. */
  const change = (filter: Filter<UsageDocument>, set: Partial<UsageDocument>): Promise<boolean> =>
    db.attempt(async () => {
      const { matchedCount } = await usage.updateOne(filter, { $set: set });
      return matchedCount === 1;
    });
  return {
    prepare: () => migrate(db, [textMongoSchema]),
    open: (intent) => db.attempt(() => open(usage, intent)),
    confirm: (requestId, owner, leaseUntil) =>
      change({ _id: requestId, owner, status: "open" }, { dispatched: true, dueAt: leaseUntil }),
    checkpoint: (requestId, owner, { inputTokens, outputTokens, leaseUntil }) =>
      change(
        { _id: requestId, owner, status: "open" },
        { inputTokens, outputTokens, dueAt: leaseUntil },
      ),
    close: (requestId, closer, closing, at) =>
      db.attempt((unsure) => close(usage, { requestId, closer, closing, at, unsure })),
    finish: (requestId, keptUntil) =>
      db.attempt(async () => {
        const ended = { _id: requestId, status: { $in: ["settling", "review"] as const } };
        const kept = await usage.updateOne(
          { ...ended, "idem.key": { $exists: true } } as Filter<UsageDocument>,
          { $set: { status: "closed", keptUntil }, $unset: { dueAt: "" } },
        );
        if (kept.matchedCount === 0) await usage.deleteOne(ended as Filter<UsageDocument>);
      }),
    withdraw: (requestId, owner) =>
      db.attempt(async () => {
        await usage.deleteOne({ _id: requestId, owner, status: "open", dispatched: false });
      }),
    defer: async (requestId, dueAt) => {
      await change({ _id: requestId, status: { $in: ["settling", "review"] } }, { dueAt });
    },
    find: (requestId) =>
      db.attempt(async () => {
        const doc = await usage.findOne({ _id: requestId }, withoutAnswer);
        return doc ? recordOf(doc) : undefined;
      }),
    findByKey: ({ keyId, operation, key }, now) =>
      db.attempt(async () => {
        const doc = await usage.findOne({ keyId, operation, "idem.key": key });
        return doc && !isOver(doc, now) ? keyedOf(doc) : undefined;
      }),
    due: (now, limit) =>
      db.attempt(async () => {
        const cursor = usage.find({ dueAt: { $lte: now } }, withoutAnswer).sort({ dueAt: 1 });
        return (await cursor.limit(limit).toArray()).map(recordOf);
      }),
    reviews: (accountId, limit) =>
      db.attempt(async () => {
        const ofAccount = accountId === undefined ? {} : { accountId };
        const cursor = usage
          .find({ status: "review", ...ofAccount }, withoutAnswer)
          .sort({ closedAt: 1, _id: 1 });
        return (await cursor.limit(limit).toArray()).map(recordOf);
      }),
    rememberMakers: makers.rememberMakers,
    findMakers: makers.findMakers,
    async forget(now, limit) {
      const answers = await db.attempt(() => forgetAnswers(usage, now, limit));
      return answers + (await makers.forget(now, limit));
    },
  };
}

const withoutAnswer = { projection: { answer: 0 } } as const;

/** Is its answer past its time? */
function isOver({ keptUntil }: UsageDocument, now: number): boolean {
  return keptUntil !== undefined && keptUntil <= now;
}

async function open(usage: Collection<UsageDocument>, intent: Intent): Promise<boolean> {
  const { requestId, keyId, operation, idempotency, openedAt } = intent;
  for (let tries = 0; tries < maxOpenTries; tries++) {
    try {
      await usage.insertOne(documentOf(intent));
      return true;
    } catch (error) {
      if (!isDuplicate(error)) throw error;
    }
    // In the way stands itself, another request in its slot, or an answer whose time is over.
    if (await usage.findOne({ _id: requestId }, { projection: { _id: 1 } })) return true;
    const key = idempotency?.key ?? "";
    const old = await usage.findOne({ keyId, operation, "idem.key": key }, withoutAnswer);
    if (old && !isOver(old, openedAt)) return false;
    if (old) await usage.deleteOne({ _id: old._id, keptUntil: { $lte: openedAt } });
  }
  return false;
}

async function close(
  usage: Collection<UsageDocument>,
  options: {
    requestId: string;
    closer: Closer;
    closing: Closing;
    at: { now: number; dueAt: number };
    /** A close without an answer may have been carried out. */
    unsure: boolean;
  },
): Promise<boolean> {
  const { requestId, closer, closing, at, unsure } = options;
  const mayClose =
    "owner" in closer ? { owner: closer.owner } : { dueAt: { $lte: closer.leaseOverAt } };
  const { matchedCount } = await usage.updateOne(
    { _id: requestId, status: "open", ...mayClose },
    {
      $set: closingFields(closing, at),
      // Without an answer its slot is free from now on.
      ...(closing.answer ? {} : { $unset: { idem: "" } }),
    },
  );
  if (matchedCount === 1 || !unsure) return matchedCount === 1;
  const doc = await usage.findOne({ _id: requestId }, withoutAnswer);
  return doc !== null && isClosedAs(doc, closing, at);
}

async function forgetAnswers(
  usage: Collection<UsageDocument>,
  now: number,
  limit: number,
): Promise<number> {
  const over = { keptUntil: { $lte: now } };
  const docs = await usage
    .find(over, { projection: { _id: 1 } })
    .limit(limit)
    .toArray();
  if (docs.length === 0) return 0;
  const ids = docs.map(({ _id }) => _id);
  const { deletedCount } = await usage.deleteMany({ _id: { $in: ids }, ...over });
  return deletedCount;
}
