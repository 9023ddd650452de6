import type { Collection } from "mongodb";
import type { MongoDatabase } from "#kit/mongo/connect.ts";
import { mongodb } from "#kit/mongo/driver.ts";
import { awayRefusal } from "#kit/mongo/errors.ts";
import { hasChange, jobOf, sparsely, updateOf } from "./docs-mongo.ts";
import type { Job } from "./job.ts";
import { type JobCommand, step } from "./lifecycle.ts";
import { changesKept, maxTransitionRounds } from "./limits-mongo.ts";
import type { JobDocument } from "./schema-mongo.ts";

/**
 * Applies a command to a job, once; undefined where its state does not allow it. `place`: for a job that comes to run; where
 * another running job of the model has it, the driver's duplicate key error passes, and nothing was changed.
 */
export type Transition = (
  jobId: string,
  command: JobCommand,
  place?: number,
) => Promise<Job | undefined>;

/** Makes it. */
export function createTransition(db: MongoDatabase, jobs: Collection<JobDocument>): Transition {
  // Of one process, one change of a job at a time: only other processes can come in between.
  const inTurn = createTurns();
  return (jobId, command, place) => inTurn(jobId, () => change(db, jobs, jobId, command, place));
}

/** Runs work of the same name one after the other. */
export function createTurns(): <T>(name: string, work: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>();
  return (name, work) => {
    const done = (last.get(name) ?? Promise.resolve()).then(work);
    const settled = done
      .catch(() => {})
      .then(() => {
        if (last.get(name) === settled) last.delete(name);
      });
    last.set(name, settled);
    return done;
  };
}

/**
 * Reads, steps, and writes where the version is still the one that was read. The change has a name: where an answer was
 * lost, the document itself says whether it was made, and a request that comes late finds another version.
 */
function change(
  db: MongoDatabase,
  jobs: Collection<JobDocument>,
  jobId: string,
  command: JobCommand,
  place: number | undefined,
): Promise<Job | undefined> {
  const name = new (mongodb().ObjectId)();
  let sent: { v: number; next: Job } | undefined;
  return db.attempt(async (unsure) => {
    for (let round = 0; round < maxTransitionRounds; round++) {
      const doc = await jobs.findOne({ _id: jobId });
      if (sent && hasChange(doc, name)) return sent.next;
      if (sent && unsure && (!doc || doc.v - sent.v > changesKept)) throw untold();
      const job = doc && jobOf(doc);
      const next = job && step(job, command);
      if (!next) return undefined;
      sent = { v: doc.v, next };
      const update = updateOf(doc, {
        job,
        next,
        change: name,
        ...(place === undefined ? {} : { place }),
      });
      const { matchedCount } = await jobs.updateOne({ _id: jobId, v: doc.v }, update, sparsely);
      if (matchedCount === 1) return next;
    }
    throw awayRefusal(new Error("a job does not come to rest"));
  });
}

function untold() {
  return awayRefusal(new Error("nobody knows any more whether a job's change was made"));
}
