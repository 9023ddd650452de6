// Counts the bytes of recorded answers by account in MongoDB, so that no account keeps too many.

import type { UpdateFilter } from "mongodb";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { isDuplicate } from "#kit/store/mongo/errors.ts";
import { deleteSome } from "#kit/store/mongo/writes.ts";
import { keptCountMs } from "../base/limits.ts";
import type { UsageStore } from "./store.ts";
import { type KeptDocument, textCollections } from "./store-mongo-docs.ts";

/** The part of the store that counts the bytes of kept answers. */
export interface KeptCounts extends Pick<UsageStore, "countKept"> {
  /** Deletes up to `limit` counts whose time has ended. Answers the number of deleted counts. */
  forget(now: number, limit: number): Promise<number>;
}

/**
 * Makes that part. The bytes are added before the sum is read, so that of two replicas at the bound one is refused. Refused bytes
 * are subtracted again. Where a reply of MongoDB is lost in between, too many bytes count until their time ends.
 */
export function createMongoKeptCounts(db: MongoDatabase): KeptCounts {
  const counts = db.collection<KeptDocument>(textCollections.kept);
  /** Not an upsert: where two upserts make a document at once, DocumentDB replaces the earlier by the later (its issue 295). */
  const add = async (_id: string, bytes: number, until: number) => {
    const update = {
      $inc: { [`bytes.${until}`]: bytes },
      $max: { until },
    } as UpdateFilter<KeptDocument>;
    const options = { returnDocument: "after" } as const;
    const known = await counts.findOneAndUpdate({ _id }, update, options);
    if (known) return known;
    const made: KeptDocument = { _id, bytes: { [until]: bytes }, until };
    try {
      await counts.insertOne(made);
      return made;
    } catch (error) {
      if (!isDuplicate(error)) throw error;
      // Another replica made the document in between.
      return counts.findOneAndUpdate({ _id }, update, options);
    }
  };
  return {
    countKept: (_id, bytes, { now, until, most }) =>
      db.attempt(async () => {
        const doc = await add(_id, bytes, until);
        const all = Object.entries(doc?.bytes ?? {});
        // A clock that was ahead counted the bytes with later times.
        const last = until + keptCountMs;
        const isOver = ([time]: [string, unknown]) => Number(time) <= now || Number(time) > last;
        const kept = all.reduce((sum, one) => (isOver(one) ? sum : sum + Number(one[1])), 0);
        const past = all.filter(isOver).map(([time]) => [`bytes.${time}`, ""]);
        const isTooMuch = kept > most;
        if (isTooMuch || past.length > 0) {
          await counts.updateOne({ _id }, {
            ...(isTooMuch ? { $inc: { [`bytes.${until}`]: -bytes } } : {}),
            ...(past.length > 0 ? { $unset: Object.fromEntries(past) } : {}),
          } as UpdateFilter<KeptDocument>);
        }
        return !isTooMuch;
      }),
    forget: (now, limit) => db.attempt(() => deleteSome(counts, { until: { $lte: now } }, limit)),
  };
}
