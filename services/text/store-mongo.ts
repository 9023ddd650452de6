import type { Filter } from "mongodb";
import type { MongoDatabase } from "#kit/mongo/connect.ts";
import { migrate } from "#kit/mongo/migrate.ts";
import { deleteSome } from "#kit/mongo/writes.ts";
import { longestDueMs } from "#kit/paid-work/limits.ts";
import { longestReviewMs } from "./limits.ts";
import type { UsageStore } from "./store.ts";
import { closingFields, isClosedAs, keyedOf, recordOf } from "./store-mongo-docs.ts";
import { createMongoKeptCounts } from "./store-mongo-kept.ts";
import { createMongoMakers } from "./store-mongo-makers.ts";
import { createMongoReviews } from "./store-mongo-reviews.ts";
import {
  isOver,
  textCollections,
  textMongoSchema,
  type UsageDocument,
  withoutAnswer,
} from "./store-mongo-schema.ts";
import { createUsageWrites } from "./store-mongo-writes.ts";

/** The store in MongoDB: a request is a document, and each transition a write of it under a condition. */
export function createMongoUsageStore(db: MongoDatabase): UsageStore {
  const usage = db.collection<UsageDocument>(textCollections.usage);
  const makers = createMongoMakers(db);
  const reviews = createMongoReviews(db, usage);
  const kept = createMongoKeptCounts(db);
  const writes = createUsageWrites(db, usage);
  const changeOpen = (requestId: string, owner: string, set: Partial<UsageDocument>) =>
    writes.change({ filter: { _id: requestId, owner, status: "open" }, update: { $set: set } });
  return {
    prepare: () => migrate(db, [textMongoSchema]),
    open: writes.open,
    checkpoint: (requestId, owner, { inputTokens, outputTokens, leaseUntil, told }) =>
      changeOpen(requestId, owner, {
        ...{ inputTokens, outputTokens, dueAt: leaseUntil },
        ...(told ? { told } : {}),
      }),
    close(requestId, closer, closing, at) {
      const mayClose =
        "owner" in closer ? { owner: closer.owner } : { dueAt: { $lte: closer.leaseOverAt } };
      return writes.changeOnce({
        requestId,
        filter: { _id: requestId, status: "open" as const, ...mayClose },
        update: {
          $set: closingFields(closing, at),
          // Without an answer its slot is free from now on.
          ...(closing.answer === undefined ? { $unset: { idem: "" as const } } : {}),
        },
        async isMade() {
          const doc = await usage.findOne({ _id: requestId }, withoutAnswer);
          return doc !== null && isClosedAs(doc, closing, at);
        },
        isAlone: closing.answer instanceof Uint8Array || !("owner" in closer),
      });
    },
    async finish(requestId, keptUntil, charged) {
      await writes.finish({ requestId, keptUntil, charged });
    },
    withdraw: (requestId, owner) =>
      db.attempt(async () => {
        await usage.deleteOne({ _id: requestId, owner, status: "open" });
      }),
    defer: async (requestId, dueAt) => {
      const filter = { _id: requestId, status: { $in: ["settling", "review"] as const } };
      await writes.change({ filter: filter as Filter<UsageDocument>, update: { $set: { dueAt } } });
    },
    countKept: kept.countKept,
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
    bringForward: (now, at) =>
      db.attempt(async () => {
        const ofOthers = { status: { $ne: "review" } } as const;
        const ofReviews = { dueAt: { $gt: now + longestReviewMs } };
        await usage.updateMany(
          { dueAt: { $gt: now + longestDueMs }, $or: [ofOthers, ofReviews] },
          { $set: { dueAt: at } },
        );
      }),
    noteReview: reviews.noteReview,
    reviews: reviews.reviews,
    rememberMakers: makers.rememberMakers,
    findMakers: makers.findMakers,
    eraseKept: (keyIds, limit) =>
      db.attempt(async () => {
        const kept = {
          ...{ keyId: { $in: [...keyIds] }, status: "closed" as const },
          "idem.key": { $exists: true },
        };
        const docs = await usage
          .find(kept, { projection: { _id: 1 } })
          .limit(limit)
          .toArray();
        if (docs.length === 0) return 0;
        await usage.deleteMany({ _id: { $in: docs.map(({ _id }) => _id) }, status: "closed" });
        return docs.length;
      }),
    async forget(now, limit) {
      const over = { keptUntil: { $lte: now } };
      const answers = await db.attempt(() => deleteSome(usage, over, limit));
      const others = [makers, reviews, kept].map((part) => part.forget(now, limit));
      return (await Promise.all(others)).reduce((sum, gone) => sum + gone, answers);
    },
  };
}
