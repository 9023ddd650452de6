// Joins the writes of many requests into few commands to MongoDB. A request writes several times, and a command for each would be
// too slow.

import type { Collection, Filter, MongoBulkWriteError } from "mongodb";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { isDuplicate } from "#kit/store/mongo/errors.ts";
import { createTurns } from "#kit/store/mongo/turns.ts";
import { type Change, changeAll, changeOne, writeTogether } from "#kit/store/mongo/writes.ts";
import { finishLingerMs, maxOpenTries } from "../base/limits.ts";
import type { Intent } from "./store.ts";
import { documentOf, isOver, type UsageDocument, withoutAnswer } from "./store-mongo-docs.ts";

/** The writes that every request makes. Writes of different requests share commands. */
export interface UsageWrites {
  /** See {@link UsageStore.open}. */
  open(intent: Intent, signal?: AbortSignal): Promise<boolean>;
  /** Changes one document that matches. The change may be made twice, and must match the second time, too. */
  change(change: Change<UsageDocument>): Promise<boolean>;
  /** As {@link change}, where the change matches only once. */
  changeOnce(change: OnceChange): Promise<boolean>;
  /** See {@link UsageStore.finish}. */
  finish(finished: Finished): Promise<true>;
}

/** A request whose hold has ended. */
export interface Finished {
  requestId: string;
  /** For a request with an answer. Ms since the epoch. */
  keptUntil: number;
  /** USD micros. */
  charged: bigint;
}

/** A change that does not match a second time. */
export interface OnceChange extends Change<UsageDocument> {
  /** The only request that the change can match. */
  requestId: string;
  /** Was the change made? Called where it does not match, and an attempt without an answer may have made it. */
  isMade: () => Promise<boolean>;
  /** The change shares no command. It has megabytes, or another replica might make exactly the same change. */
  isAlone: boolean;
}

/** Makes the {@link UsageWrites} of a database. */
export function createUsageWrites(
  db: MongoDatabase,
  usage: Collection<UsageDocument>,
): UsageWrites {
  const alone = async (change: Change<UsageDocument> | OnceChange, unsure: boolean) => {
    if (await changeOne(usage, change)) return true;
    return unsure && "isMade" in change && (await change.isMade());
  };
  const change = writeTogether<Change<UsageDocument> | OnceChange, boolean>(db, {
    alone,
    async all(changes) {
      return (await changeAll(usage, changes)) ? changes.map(() => true) : [];
    },
  });
  const inTurn = createTurns(db.clock);
  const opened = writeTogether<Intent, boolean>(db, {
    alone: (intent) => open(usage, intent),
    all: (intents) => openAll(usage, intents),
  });
  return {
    open(intent, signal) {
      const { keyId, operation, idempotency } = intent;
      if (idempotency === undefined) return opened(intent);
      // Different requests may have one idempotency key at the same time. They take turns.
      const slot = JSON.stringify([keyId, operation, idempotency.key]);
      return inTurn(slot, () => opened(intent), signal);
    },
    change,
    changeOnce: (one) =>
      // Two equal changes cannot be distinguished afterwards. So the second one begins after the first has ended, and shares no
      // command.
      inTurn(one.requestId, (hasWaited) =>
        one.isAlone || hasWaited ? db.attempt((unsure) => alone(one, unsure)) : change(one),
      ),
    finish: writeTogether<Finished, true>(
      db,
      {
        alone: (finished) => finish(usage, finished),
        async all(list) {
          const ids = list.map(({ requestId }) => requestId);
          const { deletedCount } = await usage.deleteMany(unkept({ $in: ids }));
          return deletedCount === list.length ? list.map(() => true as const) : [];
        },
      },
      { waitMs: finishLingerMs },
    ),
  };
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
    // The conflict was with the intent itself, with another request in its slot, or with an answer whose time has ended.
    if (await usage.findOne({ _id: requestId }, { projection: { _id: 1 } })) return true;
    const key = idempotency?.key ?? "";
    const old = await usage.findOne({ keyId, operation, "idem.key": key }, withoutAnswer);
    if (old && !isOver(old, openedAt)) return false;
    if (old) await usage.deleteOne({ _id: old._id, keptUntil: { $lte: openedAt } });
  }
  return false;
}

/** True for each inserted intent. Undefined for an intent that conflicts with a document. */
async function openAll(
  usage: Collection<UsageDocument>,
  intents: readonly Intent[],
): Promise<(true | undefined)[]> {
  try {
    await usage.insertMany(intents.map(documentOf), { ordered: false });
    return intents.map(() => true);
  } catch (error) {
    if (!isDuplicate(error)) throw error;
    const { writeErrors } = error as MongoBulkWriteError;
    const refused = new Set([writeErrors].flat().map(({ index }) => index));
    return intents.map((_, i) => (refused.has(i) ? undefined : true));
  }
}

/**
 * Most requests have no answer to be kept, and are deleted. Where nothing is deleted, the request has one, or was finished before.
 */
async function finish(
  usage: Collection<UsageDocument>,
  { requestId, keptUntil, charged }: Finished,
): Promise<true> {
  const { deletedCount } = await usage.deleteOne(unkept(requestId));
  if (deletedCount === 0) {
    await usage.updateOne(
      { _id: requestId, status: ended, "idem.key": { $exists: true } } as Filter<UsageDocument>,
      {
        $set: { status: "closed", keptUntil, "charge.amount": charged },
        $unset: { dueAt: "" },
      },
    );
  }
  return true;
}

const ended = { $in: ["settling", "review"] };

function unkept(_id: string | { $in: string[] }): Filter<UsageDocument> {
  const status = { $in: ["open", ...ended.$in] };
  return { _id, status, "idem.key": { $exists: false } } as Filter<UsageDocument>;
}
