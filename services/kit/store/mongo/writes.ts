// Writes and deletes single documents, many in one command. Stores with many writes at once use it.

import type { AnyBulkWriteOperation, Collection, Document, Filter, UpdateFilter } from "mongodb";
import { batched } from "#kit/base/batching.ts";
import type { MongoDatabase } from "./connect.ts";
import { mongoFault } from "./errors.ts";
import { lanesOfWrites, maxWritesTogether } from "./limits.ts";

/** An update of one document that matches. */
export interface Change<T> {
  filter: Filter<T>;
  update: UpdateFilter<T>;
}

/** A kind of write on single documents. */
export interface WriteKind<I, O> {
  /**
   * Makes one write. `unsure`: it may have been carried out before, without an answer. Each error that it rejects with is final or
   * `away`.
   */
  alone(input: I, unsure: boolean): Promise<O>;
  /** Makes two or more in one command. Undefined for each one whose result the answer does not show. */
  all(inputs: readonly I[]): Promise<readonly (O | undefined)[]>;
}

/**
 * Lets writes that come at the same time share one command, because the command is most of a write's cost, here and at the server. Each
 * is still a write of its own, and as durable as alone. A write whose result the shared answer does not show is made again, alone and
 * `unsure`. After a command without an answer this is done for each of its writes. `waitMs` is how long the first one waits for others.
 * It is for writes that no caller waits for.
 */
export function writeTogether<I, O>(
  db: MongoDatabase,
  { alone, all }: WriteKind<I, O>,
  { waitMs = 0 }: { waitMs?: number } = {},
): (input: I) => Promise<O> {
  const join = batched<I, O | undefined>(
    async (inputs) => {
      const [first] = inputs;
      if (inputs.length === 1 && first !== undefined) return [await alone(first, false)];
      try {
        return await all(inputs);
      } catch (error) {
        if (mongoFault(error) === "away") throw error;
        // A fault of one of them is no fault of the others.
        return [];
      }
    },
    { lanes: lanesOfWrites, most: maxWritesTogether, waitMs },
  );
  return (input) =>
    db.attempt(async (unsure) => {
      const known = unsure ? undefined : await join(input);
      return known === undefined ? alone(input, true) : known;
    });
}

/** Updates one document. False where none matches. */
export async function changeOne<T extends Document>(
  collection: Collection<T>,
  { filter, update }: Change<T>,
): Promise<boolean> {
  const { matchedCount } = await collection.updateOne(filter, update);
  return matchedCount === 1;
}

/** Makes changes of different documents in one command. True: all matched. False: only some did, or none. */
export async function changeAll<T extends Document>(
  collection: Collection<T>,
  changes: readonly Change<T>[],
): Promise<boolean> {
  const updates = changes.map(
    ({ filter, update }) => ({ updateOne: { filter, update } }) as AnyBulkWriteOperation<T>,
  );
  const { matchedCount } = await collection.bulkWrite(updates, { ordered: false });
  return matchedCount === changes.length;
}

/**
 * Deletes up to `limit` documents that match, and answers how many were deleted. They are looked up first, because a command that
 * deletes knows no limit. A document that does not match any longer by then stays.
 */
export async function deleteSome<T extends Document>(
  collection: Collection<T>,
  filter: Filter<T>,
  limit: number,
): Promise<number> {
  const found = collection.find(filter, { projection: { _id: 1 } }).limit(limit);
  const ids = (await found.toArray()).map(({ _id }) => _id);
  if (ids.length === 0) return 0;
  const { deletedCount } = await collection.deleteMany({
    ...filter,
    _id: { $in: ids },
  } as Filter<T>);
  return deletedCount;
}
