// The store of running requests in MongoDB, for several replicas. `store.ts` says what each method promises.

import type { Collection, Filter } from "mongodb";
import { longestDueMs } from "#common/paid-work/limits.ts";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { isDuplicate } from "#kit/store/mongo/errors.ts";
import { migrate } from "#kit/store/mongo/migrate.ts";
import { deleteSome } from "#kit/store/mongo/writes.ts";
import { longestReviewMs, makersAtOnce } from "../base/limits.ts";
import type { OpaqueMaker } from "../request/opaque.ts";
import type { Review, UsageStore } from "./store.ts";
import {
  closingFields,
  isClosedAs,
  isOver,
  keyedOf,
  type MakerDocument,
  type ReviewDocument,
  recordOf,
  textCollections,
  textMongoSchema,
  type UsageDocument,
  withoutAnswer,
} from "./store-mongo-docs.ts";
import { createMongoKeptCounts } from "./store-mongo-kept.ts";
import { createUsageWrites } from "./store-mongo-writes.ts";

/** The store in MongoDB. A request is a document, and each transition is a write of the document under a condition. */
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
          // Without an answer the request's slot is free from now on.
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
    eraseKept: (keyIds, limit) => db.attempt(() => eraseKept(usage, keyIds, limit)),
    async forget(now, limit) {
      const over = { keptUntil: { $lte: now } };
      const answers = await db.attempt(() => deleteSome(usage, over, limit));
      const others = [makers, reviews, kept].map((part) => part.forget(now, limit));
      return (await Promise.all(others)).reduce((sum, gone) => sum + gone, answers);
    },
  };
}

/** Deletes up to `limit` closed requests of these keys whose answers are kept. Answers the number of deleted requests. */
async function eraseKept(
  usage: Collection<UsageDocument>,
  keyIds: readonly string[],
  limit: number,
): Promise<number> {
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
}

/** The part of the store that remembers makers of opaque state. */
interface Makers extends Pick<UsageStore, "rememberMakers" | "findMakers"> {
  /** Deletes up to `limit` makers whose time has ended. Answers the number of deleted makers. */
  forget(now: number, limit: number): Promise<number>;
}

/** Makes that part. */
function createMongoMakers(db: MongoDatabase): Makers {
  const makers = db.collection<MakerDocument>(textCollections.makers);
  return {
    async rememberMakers(list, until) {
      for (const some of parts(list)) await db.attempt(() => remember(makers, some, until));
    },
    async findMakers(hashes, now) {
      const found: OpaqueMaker[] = [];
      for (const some of parts(hashes)) {
        const filter = { hash: { $in: [...some] }, until: { $gt: now } };
        const docs = await db.attempt(() => makers.find(filter).toArray());
        found.push(...docs.map(({ hash, accountId, upstream }) => ({ hash, accountId, upstream })));
      }
      return found;
    },
    forget: (now, limit) => db.attempt(() => deleteSome(makers, { until: { $lte: now } }, limit)),
  };
}

/** Most makers are new, so they are inserted together. Where some were known already, a second command updates them. */
async function remember(
  makers: Collection<MakerDocument>,
  list: readonly OpaqueMaker[],
  until: number,
): Promise<void> {
  const docs = list.map(
    ({ hash, accountId, upstream }): MakerDocument => ({
      _id: `${hash}:${accountId}`,
      hash,
      accountId,
      upstream,
      until,
    }),
  );
  try {
    await makers.insertMany(docs, { ordered: false });
    return;
  } catch (error) {
    if (!isDuplicate(error)) throw error;
  }
  await makers.bulkWrite(
    docs.map(({ _id, hash, accountId, upstream }) => ({
      updateOne: {
        filter: { _id },
        update: { $set: { upstream, until }, $setOnInsert: { hash, accountId } },
        upsert: true,
      },
    })),
    { ordered: false },
  );
}

function* parts<T>(list: readonly T[]): Iterable<readonly T[]> {
  for (let from = 0; from < list.length; from += makersAtOnce) {
    yield list.slice(from, from + makersAtOnce);
  }
}

/** The part of the store that keeps reviews. */
interface Reviews extends Pick<UsageStore, "noteReview" | "reviews"> {
  /** Deletes up to `limit` reviews whose time has ended. Answers the number of deleted reviews. */
  forget(now: number, limit: number): Promise<number>;
}

/** Makes that part. `usage` has the requests that earlier versions put in review. */
function createMongoReviews(db: MongoDatabase, usage: Collection<UsageDocument>): Reviews {
  const reviews = db.collection<ReviewDocument>(textCollections.reviews);
  return {
    noteReview: (review, until) =>
      db.attempt(async () => {
        const { requestId, charged, ...rest } = review;
        const doc = { _id: requestId, ...rest, charged: charged ?? 0n, until };
        await reviews.insertOne(doc).catch((error) => {
          if (!isDuplicate(error)) throw error;
        });
      }),
    reviews: (accountId, limit) =>
      db.attempt(async () => {
        const ofAccount = accountId === undefined ? {} : { accountId };
        const [noted, standing] = await Promise.all([
          // All reviews are kept for the same time. So the order of `until` is the order of `at`.
          reviews
            .find({ until: { $gt: 0 }, ...ofAccount })
            .sort({ until: 1 })
            .limit(limit)
            .toArray(),
          usage
            .find({ status: "review", ...ofAccount }, withoutAnswer)
            .sort({ closedAt: 1, _id: 1 })
            .limit(limit)
            .toArray(),
        ]);
        const all = [...noted.map(reviewOf), ...standing.map(standingReview)];
        return all.sort((a, b) => a.at - b.at).slice(0, limit);
      }),
    forget: (now, limit) => db.attempt(() => deleteSome(reviews, { until: { $lte: now } }, limit)),
  };
}

function reviewOf({ _id, accountId, modelId, reported, charged, at }: ReviewDocument): Review {
  return { requestId: _id, accountId, modelId, reported, charged: BigInt(charged), at };
}

function standingReview(doc: UsageDocument): Review {
  const { _id, accountId, modelId, reported = "", closedAt, openedAt } = doc;
  return {
    requestId: _id,
    accountId,
    modelId,
    reported,
    charged: undefined,
    at: closedAt ?? openedAt,
  };
}
