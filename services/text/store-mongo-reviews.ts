import type { Collection } from "mongodb";
import type { MongoDatabase } from "#kit/mongo/connect.ts";
import { isDuplicate } from "#kit/mongo/errors.ts";
import { deleteSome } from "#kit/mongo/writes.ts";
import type { Review, UsageStore } from "./store.ts";
import {
  type ReviewDocument,
  textCollections,
  type UsageDocument,
  withoutAnswer,
} from "./store-mongo-schema.ts";

/** The part of the store that holds reviews. */
export interface Reviews extends Pick<UsageStore, "noteReview" | "reviews"> {
  /** Deletes up to `limit` that are over; answers how many went. */
  forget(now: number, limit: number): Promise<number>;
}

/** Makes that part. `usage`: where older releases put requests in review. */
export function createMongoReviews(db: MongoDatabase, usage: Collection<UsageDocument>): Reviews {
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
          // All are kept for the same time: in the order of its end they are in their own.
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
