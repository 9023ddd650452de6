import type { Collection, Filter, MongoBulkWriteError } from "mongodb";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { isDuplicate } from "#kit/store/mongo/errors.ts";
import { createTurns } from "#kit/store/mongo/turns.ts";
import { type Change, changeAll, changeOne, writeTogether } from "#kit/store/mongo/writes.ts";
import { finishLingerMs, maxOpenTries } from "../base/limits.ts";
import type { Intent } from "./store.ts";
import { documentOf, isOver, type UsageDocument, withoutAnswer } from "./store-mongo-docs.ts";

/** The writes that every request makes; those of different requests travel together. */
export interface UsageWrites {
  /** As UsageStore has it. */
  open(intent: Intent, signal?: AbortSignal): Promise<boolean>;
  /** Changes one document that fits. It may be made twice, and must fit the second time, too. */
  change(change: Change<UsageDocument>): Promise<boolean>;
  /** As {@link change}, where it fits but once. */
  changeOnce(change: OnceChange): Promise<boolean>;
  /** As UsageStore has it. */
  finish(finished: Finished): Promise<true>;
}

/** A request whose hold is ended. */
export interface Finished {
  requestId: string;
  /** Of one with an answer; ms since the epoch. */
  keptUntil: number;
  /** USD micros. */
  charged: bigint;
}

/** A change that does not fit a second time. */
export interface OnceChange extends Change<UsageDocument> {
  /** Of the request, by which alone the change finds it. */
  requestId: string;
  /** Tells, where it does not fit and may have been carried out before, whether it was. */
  isMade: () => Promise<boolean>;
  /** It travels with no other: it brings megabytes, or another replica might make the very same. */
  isAlone: boolean;
}

/** Makes them. */
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
      // Different requests under one idempotency key come together.
      const slot = JSON.stringify([keyId, operation, idempotency.key]);
      return inTurn(slot, () => opened(intent), signal);
    },
    change,
    changeOnce: (one) =>
      // Two that are alike cannot be told apart afterwards: the second comes when the first has ended, and travels with no other.
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
    // In the way stands itself, another request in its slot, or an answer whose time is over.
    if (await usage.findOne({ _id: requestId }, { projection: { _id: 1 } })) return true;
    const key = idempotency?.key ?? "";
    const old = await usage.findOne({ keyId, operation, "idem.key": key }, withoutAnswer);
    if (old && !isOver(old, openedAt)) return false;
    if (old) await usage.deleteOne({ _id: old._id, keptUntil: { $lte: openedAt } });
  }
  return false;
}

/** True of each that was inserted; the others have something in their way. */
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

/** Most have no answer to be kept; where nothing is deleted, it is one that has, or was finished before. */
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
