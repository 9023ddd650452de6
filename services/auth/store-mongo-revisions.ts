import type { Collection } from "mongodb";
import { ErrorReason, isRefusal } from "#kit/errors.ts";
import type { MongoDatabase } from "#kit/mongo/connect.ts";
import { awayRefusal } from "#kit/mongo/errors.ts";
import { conflictPauseMs, maxConflicts, revisionLostMs, toldPollMs } from "./limits.ts";
import { authCollections, type RevisionDocument } from "./store-mongo-schema.ts";

/**
 * Numbers the changes of keys, which lie in documents of their own. A revision is given away before its change is
 * written, and pending until it is; the store's revision is below all that are pending, so that whoever reads it, and
 * then what changed up to it, misses nothing.
 */
export interface Revisions {
  /** The store's revision: everything that changed up to it can be read. Gives up those who died over their change. */
  now(): Promise<bigint>;
  /**
   * Makes a change under a new revision, and resolves when it is told. `write` writes it with the revision, or refuses;
   * `touch` gives what it wrote a newer one, where the first was given up before it had an end.
   */
  change<T>(
    write: (revision: bigint) => Promise<T>,
    touch: (revision: bigint, written: T) => Promise<T>,
  ): Promise<T>;
}

/** Makes the {@link Revisions} of a database. */
export function createRevisions(db: MongoDatabase): Revisions {
  const revisions = db.collection<RevisionDocument>(authCollections.revision);
  const lost = createLostWatch(db.clock);

  async function read(): Promise<RevisionDocument> {
    const doc = await db.attempt(() => revisions.findOne({ _id: "revision" }));
    return doc ?? missing();
  }
  async function now(): Promise<bigint> {
    const doc = await read();
    const given = lost.among(doc.pending);
    if (given.length === 0) return toldOf(doc);
    return toldOf((await end(revisions, db, given)).after);
  }
  const begin = together((count) => give(revisions, db, count));

  return {
    now,
    async change(write, touch) {
      let revision = await begin();
      let result: Awaited<ReturnType<typeof write>>;
      try {
        result = await write(revision);
      } catch (error) {
        // Else it may yet be written: it stays pending until that is out of the question.
        const isOver = isRefusal(error) && !isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE);
        if (isOver) await end(revisions, db, [revision]);
        throw error;
      }
      for (;;) {
        const { before, after } = await end(revisions, db, [revision]);
        let told = toldOf(after);
        const isInTime = before.pending.includes(revision);
        while (isInTime && told < revision) {
          await db.clock.sleep(toldPollMs);
          told = await now();
        }
        if (isInTime) return result;
        revision = await begin();
        result = await touch(revision, result);
      }
    },
  };
}

/** The store's revision, as its document has it. */
export function toldOf({ last, pending }: RevisionDocument): bigint {
  return pending.reduce((least, one) => (one - 1n < least ? one - 1n : least), last);
}

/** Gives away the next `count` revisions and answers the first of them. */
function give(
  revisions: Collection<RevisionDocument>,
  db: MongoDatabase,
  count: number,
): Promise<bigint> {
  return db.attempt(async () => {
    for (let conflicts = 0; conflicts < maxConflicts; conflicts++) {
      const { last } = (await revisions.findOne({ _id: "revision" })) ?? missing();
      const numbers = Array.from({ length: count }, (_, i) => last + 1n + BigInt(i));
      const { matchedCount } = await revisions.updateOne(
        { _id: "revision", last },
        { $set: { last: last + BigInt(count) }, $push: { pending: { $each: numbers } } },
      );
      if (matchedCount === 1) return last + 1n;
      await db.clock.sleep(Math.random() * conflictPauseMs * conflicts);
    }
    throw awayRefusal(new Error(`overtaken ${maxConflicts} times at the revision`));
  });
}

/** Takes revisions out of those that are pending. */
async function end(
  revisions: Collection<RevisionDocument>,
  db: MongoDatabase,
  done: readonly bigint[],
): Promise<{ before: RevisionDocument; after: RevisionDocument }> {
  const before = await db.attempt(() =>
    revisions.findOneAndUpdate(
      { _id: "revision" },
      { $pull: { pending: { $in: [...done] } } },
      { returnDocument: "before" },
    ),
  );
  if (!before) return missing();
  const pending = before.pending.filter((one) => !done.includes(one));
  return { before, after: { ...before, pending } };
}

/** Lets callers of one turn of the event loop, and those who come while it lasts, share a call. */
function together(give: (count: number) => Promise<bigint>): () => Promise<bigint> {
  let waiting: { resolve: (revision: bigint) => void; reject: (error: unknown) => void }[] = [];
  let isRunning = false;
  const run = async () => {
    isRunning = true;
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      try {
        const first = await give(batch.length);
        for (const [i, { resolve }] of batch.entries()) resolve(first + BigInt(i));
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    isRunning = false;
  };
  return () =>
    new Promise((resolve, reject) => {
      waiting.push({ resolve, reject });
      if (!isRunning) void run();
    });
}

/** Tells which pending revisions have been seen pending for so long that whoever took them must be dead. */
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
