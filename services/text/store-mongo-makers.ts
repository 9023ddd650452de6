import type { Collection } from "mongodb";
import type { MongoDatabase } from "#kit/mongo/connect.ts";
import { isDuplicate } from "#kit/mongo/errors.ts";
import { deleteSome } from "#kit/mongo/writes.ts";
import { makersAtOnce } from "./limits.ts";
import type { OpaqueMaker } from "./request/opaque.ts";
import type { UsageStore } from "./store.ts";
import { type MakerDocument, textCollections } from "./store-mongo-schema.ts";

/** The part of the store that remembers makers of opaque state. */
export interface Makers extends Pick<UsageStore, "rememberMakers" | "findMakers"> {
  /** Deletes up to `limit` that are over; answers how many went. */
  forget(now: number, limit: number): Promise<number>;
}

/** Makes that part. */
export function createMongoMakers(db: MongoDatabase): Makers {
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

/** Most are new: they are inserted together, and only those that are known already are updated. */
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
