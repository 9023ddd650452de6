import type { Collection, Filter } from "mongodb";
import type { MongoDatabase } from "#kit/mongo/connect.ts";
import { mongodb } from "#kit/mongo/driver.ts";
import { awayRefusal, isDuplicate } from "#kit/mongo/errors.ts";
import { migrate } from "#kit/mongo/migrate.ts";
import { readCensus } from "./census-mongo.ts";
import { createClaim, isAnyClaimable } from "./claim-mongo.ts";
import { documentOf, hasChange, jobOf, sparsely } from "./docs-mongo.ts";
import { bringForward, isAnyDue, takeDue } from "./due-mongo.ts";
import { type Job, type JobSlot, mediaKinds } from "./job.ts";
import { maxInsertRounds } from "./limits-mongo.ts";
import { type JobDocument, jobCollections, jobsMongoSchema } from "./schema-mongo.ts";
import type { JobStore, JobsQuery } from "./store.ts";
import { createTransition } from "./transition-mongo.ts";

/** Jobs in MongoDB: a job is a document, and each transition one write of it under a condition. */
export function createMongoJobStore(db: MongoDatabase): JobStore {
  const jobs = db.collection<JobDocument>(jobCollections.jobs);
  const transition = createTransition(db, jobs);
  return {
    open: () => migrate(db, [jobsMongoSchema]),
    insert: (job) => insert(db, jobs, job),
    apply: (jobId, command) => transition(jobId, command),
    claim: createClaim(db, jobs, transition),
    isAnyClaimable: (kinds, now) => db.attempt(() => isAnyClaimable(jobs, kinds, now)),
    takeDue: (query) => takeDue(db, jobs, query),
    bringForward: (now, at) => bringForward(db, jobs, now, at),
    isAnyDue: (states, now) => isAnyDue(db, jobs, states, now),
    forget: (jobId, now) => forget(db, jobs, jobId, now),
    find: (jobId) => db.attempt(() => findJob(jobs, { _id: jobId })),
    findBySlot: (slot) => db.attempt(() => findJob(jobs, inSlot(slot))),
    findByOutput: (fileId) => db.attempt(() => findJob(jobs, { "outputs.fileId": fileId })),
    list: (query) => db.attempt(() => list(jobs, query)),
    census: () => db.attempt(() => readCensus(jobs)),
  };
}

type Jobs = Collection<JobDocument>;

async function findJob(jobs: Jobs, filter: Filter<JobDocument>): Promise<Job | undefined> {
  const doc = await jobs.findOne(filter);
  return doc ? jobOf(doc) : undefined;
}

function inSlot({ scope, key }: JobSlot): Filter<JobDocument> {
  return { "slot.scope": scope, "slot.key": key };
}

/** What stands in the way is asked for its own first change: an insert without an answer finds itself. */
function insert(db: MongoDatabase, jobs: Jobs, job: Job): Promise<Job | undefined> {
  const change = new (mongodb().ObjectId)();
  const doc = documentOf(job, change);
  return db.attempt(async () => {
    for (let round = 0; round < maxInsertRounds; round++) {
      try {
        await jobs.insertOne(doc, sparsely);
        return undefined;
      } catch (error) {
        if (!isDuplicate(error)) throw error;
      }
      const holder =
        (job.slot && (await jobs.findOne(inSlot(job.slot)))) ??
        (await jobs.findOne({ _id: job.jobId }));
      if (hasChange(holder, change)) return undefined;
      if (holder) return jobOf(holder);
    }
    throw awayRefusal(new Error("an idempotency slot does not come to rest"));
  });
}

/** A deletion without an answer was made, by this call or another one, where the job is not there any more. */
function forget(db: MongoDatabase, jobs: Jobs, jobId: string, now: number): Promise<boolean> {
  let wasOver = false;
  return db.attempt(async () => {
    const over: Filter<JobDocument> = {
      _id: jobId,
      $or: [
        { state: "rejected" },
        { state: { $in: ["completed", "failed"] }, expiresAt: { $lte: now } },
      ],
    };
    const found = await jobs.findOne(over, { projection: { _id: 1 } });
    if (!found) return wasOver;
    wasOver = true;
    const { deletedCount } = await jobs.deleteOne(over);
    if (deletedCount === 1) return true;
    wasOver = false;
    return false;
  });
}

/** MongoDB merges the order of each state and kind from the index, so no state's jobs are read to skip another's. */
async function list(jobs: Jobs, { of, states, kind, after, limit }: JobsQuery): Promise<Job[]> {
  const filter = {
    ...of,
    state: { $in: [...states] },
    "spec.kind": { $in: kind === undefined ? [...mediaKinds] : [kind] },
    ...(after
      ? {
          createdAt: { $lte: after.createdAt },
          $or: [{ createdAt: { $lt: after.createdAt } }, { _id: { $lt: after.jobId } }],
        }
      : {}),
  } as Filter<JobDocument>;
  const docs = await jobs.find(filter).sort({ createdAt: -1, _id: -1 }).limit(limit).toArray();
  return docs.map(jobOf);
}
