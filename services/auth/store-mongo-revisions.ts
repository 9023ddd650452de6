// Numbers the changes of keys in MongoDB, so that gateways that watch for changes miss none. SQLite needs none of this: a
// transaction numbers the change.

import type { Collection } from "mongodb";
import { batched } from "#kit/base/batching.ts";
import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { awayRefusal } from "#kit/store/mongo/errors.ts";
import { conflictPauseMs, maxConflicts, revisionLostMs } from "./limits.ts";
import { authCollections, type RevisionDocument } from "./store-mongo-docs.ts";

/**
 * Numbers the changes of keys. Each key is a document of its own. A revision is given out before its change is written, and is
 * pending until then. The store's revision stays below all pending ones. A process reads that revision first, and then all changes
 * above the revision that it knows. So the process misses none.
 */
export interface Revisions {
  /** Reads the revision. Gives up pending revisions whose process died before it wrote the change. */
  read(): Promise<RevisionState>;
  /**
   * Makes a change under a new revision. `write` writes the change with the revision, or refuses. `touch` gives the written
   * document a newer revision, where another process gave up the first one before the change ended.
   */
  change<T>(
    write: (revision: bigint) => Promise<T>,
    touch: (revision: bigint, written: T) => Promise<T>,
  ): Promise<T>;
}

/** The state of the revision. */
interface RevisionState {
  /** The store's revision. Every change up to it can be read. */
  told: bigint;
  /**
   * The last revision that was given out. Where it is above {@link told}, some changes above that can be read, and others not yet.
   */
  last: bigint;
}

/** Makes the {@link Revisions} of a database. */
export function createRevisions(db: MongoDatabase): Revisions {
  const revisions = db.collection<RevisionDocument>(authCollections.revision);
  const lost = createLostWatch(db.clock);

  const begin = batched<undefined, bigint>((asked) => give(revisions, db, asked.length));
  const end = batched<bigint, RevisionDocument>(async (done) => {
    const before = await endAll(revisions, db, done);
    return done.map(() => before);
  });

  return {
    async read() {
      const doc = await db.attempt(() => revisions.findOne({ _id: "revision" }));
      if (!doc) return missing();
      const given = lost.among(doc.pending);
      if (given.length > 0) await endAll(revisions, db, given);
      const pending = doc.pending.filter((one) => !given.includes(one));
      const below = pending.map((one) => one - 1n);
      return { told: below.reduce(least, doc.last), last: doc.last };
    },
    async change(write, touch) {
      let revision = await begin(undefined);
      let result: Awaited<ReturnType<typeof write>>;
      try {
        result = await write(revision);
      } catch (error) {
        // After any other error the change may still be written. Its revision then stays pending until a process gives it up.
        const isOver = isRefusal(error) && !isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE);
        if (isOver) await end(revision);
        throw error;
      }
      for (;;) {
        const { pending } = await end(revision);
        if (pending.includes(revision)) return result;
        // Another process gave the revision up, and may have passed all later changes to its watchers.
        revision = await begin(undefined);
        result = await touch(revision, result);
      }
    },
  };
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

/** Gives out the next `count` revisions. */
function give(
  revisions: Collection<RevisionDocument>,
  db: MongoDatabase,
  count: number,
): Promise<bigint[]> {
  return db.attempt(async () => {
    for (let conflicts = 0; conflicts < maxConflicts; conflicts++) {
      const { last } = (await revisions.findOne({ _id: "revision" })) ?? missing();
      const numbers = Array.from({ length: count }, (_, i) => last + 1n + BigInt(i));
      const { matchedCount } = await revisions.updateOne(
        { _id: "revision", last },
        { $set: { last: last + BigInt(count) }, $push: { pending: { $each: numbers } } },
      );
      if (matchedCount === 1) return numbers;
      await db.clock.sleep(Math.random() * conflictPauseMs * conflicts);
    }
    throw awayRefusal(new Error(`overtaken ${maxConflicts} times at the revision`));
  });
}

/** Removes revisions from the pending ones. Answers the document before that. */
async function endAll(
  revisions: Collection<RevisionDocument>,
  db: MongoDatabase,
  done: readonly bigint[],
): Promise<RevisionDocument> {
  const before = await db.attempt(() =>
    revisions.findOneAndUpdate(
      { _id: "revision" },
      { $pull: { pending: { $in: [...done] } } },
      { returnDocument: "before" },
    ),
  );
  return before ?? missing();
}

/** Finds revisions that have been pending for so long that their process must be dead. */
function createLostWatch(clock: MongoDatabase["clock"]) {
  let seen = new Map<bigint, number>();
  return {
    among(pending: readonly bigint[]): bigint[] {
      const now = clock.now();
      // Measured from when this process first saw the revision, because clocks of other machines may differ.
      seen = new Map(pending.map((one) => [one, seen.get(one) ?? now]));
      return pending.filter((one) => now - (seen.get(one) ?? now) >= revisionLostMs);
    },
  };
}

function missing(): never {
  throw new Error("the revision of the keys is missing: was the database migrated?");
}
