import type { Collection } from "mongodb";
import { batched } from "#kit/base/batching.ts";
import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { awayRefusal } from "#kit/store/mongo/errors.ts";
import { conflictPauseMs, maxConflicts, revisionLostMs } from "./limits.ts";
import { authCollections, type RevisionDocument } from "./store-mongo-docs.ts";

/**
 * Numbers the changes of keys, which lie in documents of their own. A revision is given away before its change is
 * written, and pending until it is; the store's revision stays below all that are pending. So a process that
 * reads it first, and then what changed above the one that it knows, misses nothing.
 */
export interface Revisions {
  /** Reads the revision; gives up those pending ones whose process died before its change was written. */
  read(): Promise<RevisionState>;
  /**
   * Makes a change under a new revision. `write` writes it with the revision, or refuses; `touch` gives what it wrote a
   * newer one, where the first was given up before it had an end.
   */
  change<T>(
    write: (revision: bigint) => Promise<T>,
    touch: (revision: bigint, written: T) => Promise<T>,
  ): Promise<T>;
}

/** Where the revision stands. */
interface RevisionState {
  /** The store's revision: every change up to it can be read. */
  told: bigint;
  /** The last that was given away: where it is above {@link told}, changes above that may be read, or not yet. */
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
        // Else it may yet be written: it stays pending until that is out of the question.
        const isOver = isRefusal(error) && !isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE);
        if (isOver) await end(revision);
        throw error;
      }
      for (;;) {
        const { pending } = await end(revision);
        if (pending.includes(revision)) return result;
        // Another process had given it up, and may have told its watchers all that came after it.
        revision = await begin(undefined);
        result = await touch(revision, result);
      }
    },
  };
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

/** Gives away the next `count` revisions. */
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

/** Takes revisions out of those that are pending; answers the document before that. */
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

/** Tells which revisions have been pending for so long that the process that took them must be dead. */
function createLostWatch(clock: MongoDatabase["clock"]) {
  let seen = new Map<bigint, number>();
  return {
    among(pending: readonly bigint[]): bigint[] {
      const now = clock.now();
      // By what this process saw itself: other machines' clocks say nothing.
      seen = new Map(pending.map((one) => [one, seen.get(one) ?? now]));
      return pending.filter((one) => now - (seen.get(one) ?? now) >= revisionLostMs);
    },
  };
}

function missing(): never {
  throw new Error("the revision of the keys is missing: was the database migrated?");
}
