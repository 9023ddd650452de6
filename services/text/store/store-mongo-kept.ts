import type { UpdateFilter } from "mongodb";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { isDuplicate } from "#kit/store/mongo/errors.ts";
import { deleteSome } from "#kit/store/mongo/writes.ts";
import { keptCountMs } from "../base/limits.ts";
import type { UsageStore } from "./store.ts";
import { type KeptDocument, textCollections } from "./store-mongo-docs.ts";

/** The part of the store that counts the bytes of kept answers. */
export interface KeptCounts extends Pick<UsageStore, "countKept"> {
  /** Deletes up to `limit` that are over; answers how many went. */
  forget(now: number, limit: number): Promise<number>;
}

/**
 * Makes that part. The bytes are added before they are looked at, so that of two replicas at the bound one is refused; what
 * was added for nothing is taken back. A reply that is lost in between can only count too much, until its hour is over.
 */
export function createMongoKeptCounts(db: MongoDatabase): KeptCounts {
  const counts = db.collection<KeptDocument>(textCollections.kept);
  /** Not an upsert: DocumentDB lets the later of two that make a document at once replace the earlier one (its issue 295). */
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
      // Another replica made it in between.
      return counts.findOneAndUpdate({ _id }, update, options);
    }
  };
  return {
    countKept: (_id, bytes, { now, until, most }) =>
      db.attempt(async () => {
        const doc = await add(_id, bytes, until);
        const all = Object.entries(doc?.bytes ?? {});
        // What is further off was counted by a clock that was ahead.
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
