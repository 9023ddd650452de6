// The store of jobs in MongoDB: insert, find, list, sweep. `store-mongo-claims.ts` claims jobs for workers.

import type { Collection, Document, Filter } from "mongodb";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { mongodb } from "#kit/store/mongo/driver.ts";
import { awayRefusal, isDuplicate } from "#kit/store/mongo/errors.ts";
import { migrate } from "#kit/store/mongo/migrate.ts";
import { createTurns } from "#kit/store/mongo/turns.ts";
import { jobsReadAtOnce, maxInsertRounds, maxTakeRounds } from "../limits.ts";
import type { Standing } from "./census.ts";
import { type Job, type JobSlot, type JobState, mediaKinds } from "./job.ts";
import { markFrom } from "./marks.ts";
import {
  boundsOf,
  type DueQuery,
  type JobPlace,
  type JobStore,
  type JobsQuery,
  latestDue,
  latestLease,
} from "./store.ts";
import { createClaim, isAnyClaimable, readWaitingLine } from "./store-mongo-claims.ts";
import {
  createTransition,
  documentOf,
  exceptText,
  hasChange,
  type JobDocument,
  jobCollections,
  jobOf,
  jobsMongoSchema,
  jobWithoutTextOf,
  sparsely,
} from "./store-mongo-docs.ts";

/** Jobs in MongoDB. A job is a document, and each transition is one write of it under a condition. */
export function createMongoJobStore(db: MongoDatabase): JobStore {
  const jobs = db.collection<JobDocument>(jobCollections.jobs);
  const transition = createTransition(db, jobs);
  // Repeats of one submission come at the same time.
  const inTurn = createTurns(db.clock);
  return {
    open: () => migrate(db, [jobsMongoSchema]),
    insert: (job, signal) =>
      job.slot
        ? inTurn(JSON.stringify(job.slot), () => insert(db, jobs, job), signal)
        : insert(db, jobs, job),
    apply: (jobId, command) => transition(jobId, command),
    renew: (jobId, command) => transition.renew(jobId, command),
    ...createClaim(db, jobs, transition),
    isAnyClaimable: (kinds, now) => db.attempt(() => isAnyClaimable(jobs, kinds, now)),
    takeDue: (query) => takeDue(db, jobs, query),
    bringForward: (now, at) => bringForward(db, jobs, now, at),
    isAnyDue: (states, now) => isAnyDue(db, jobs, states, now),
    forget: (jobId, now) => forget(db, jobs, jobId, now),
    find: (jobId) => db.attempt(() => findJob(jobs, { _id: jobId })),
    findWithoutText: (jobId) => db.attempt(() => findJobWithoutText(jobs, { _id: jobId })),
    findBySlot: (slot) => db.attempt(() => findJob(jobs, inSlot(slot))),
    findByOutput: (fileId) =>
      db.attempt(() => findJobWithoutText(jobs, { "outputs.fileId": fileId })),
    list: (query) => db.attempt(() => list(jobs, query)),
    surplus: ({ accountId, state, kind, newest, limit }) =>
      db.attempt(async () => {
        const filter = { accountId, state, "spec.kind": kind } as Filter<JobDocument>;
        const found = await jobs
          .find(filter, { projection: { _id: 1 } })
          .sort({ createdAt: -1, _id: -1 })
          .skip(newest)
          .limit(limit)
          .toArray();
        return found.map(({ _id }) => _id);
      }),
    unannounced: (limit) =>
      db.attempt(async () => {
        const filter = { state: { $in: ["completed", "failed"] }, "webhook.isAnnounced": false };
        const docs = await jobs
          .find(filter as Filter<JobDocument>)
          .limit(limit)
          .toArray();
        return docs.map(jobOf);
      }),
    runningFences: (jobIds) =>
      db.attempt(async () => {
        const filter: Filter<JobDocument> = { _id: { $in: [...jobIds] }, state: "running" };
        const found = await jobs.find(filter, { projection: { fence: 1 } }).toArray();
        return new Map(found.map(({ _id, fence }) => [_id, fence]));
      }),
    marks: (jobIds) =>
      db.attempt(async () => {
        const found = await jobs
          .find({ _id: { $in: [...jobIds] } }, { projection: marked })
          .toArray();
        return new Map(
          found.map(({ parked = false, ...doc }) => [
            doc._id,
            markFrom({ ...doc, isParked: parked }),
          ]),
        );
      }),
    line: (kind) => db.attempt(() => readWaitingLine(db, jobs, kind)),
    census: () => db.attempt(() => readCensus(jobs)),
  };
}

type Jobs = Collection<JobDocument>;

/** The fields of a job's mark. */
const marked = {
  ...{ state: 1, parked: 1, upstreamIndex: 1, progress: 1 },
  ...{ startedAt: 1, completedAt: 1, expiresAt: 1 },
};

async function findJob(jobs: Jobs, filter: Filter<JobDocument>): Promise<Job | undefined> {
  const doc = await jobs.findOne(filter);
  return doc ? jobOf(doc) : undefined;
}

async function findJobWithoutText(
  jobs: Jobs,
  filter: Filter<JobDocument>,
): Promise<Job | undefined> {
  const doc = await jobs.findOne(filter, { projection: exceptText });
  return doc ? jobWithoutTextOf(doc) : undefined;
}

function inSlot({ scope, key }: JobSlot): Filter<JobDocument> {
  return { "slot.scope": scope, "slot.key": key };
}

/** On a conflict, the existing document is checked for this job's first change. So an insert without an answer finds itself. */
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

/** Where a deletion got no answer and the job is gone, the deletion was made, by this call or another one. */
function forget(db: MongoDatabase, jobs: Jobs, jobId: string, now: number): Promise<boolean> {
  let wasOver = false;
  return db.attempt(async () => {
    const over: Filter<JobDocument> = {
      _id: jobId,
      $or: [
        { state: "rejected" },
        { state: { $in: ["completed", "failed", "deleted"] }, expiresAt: { $lte: now } },
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
async function list(jobs: Jobs, query: JobsQuery): Promise<Job[]> {
  const { of, states, kind, model, before, limit } = query;
  const order = before ? 1 : -1;
  const filter = {
    ...(of === "all" ? {} : of),
    ...(model === undefined ? {} : { "spec.model": model }),
    state: { $in: [...states] },
    "spec.kind": { $in: kind === undefined ? [...mediaKinds] : [kind] },
    ...between(query),
  } as Filter<JobDocument>;
  const sort = { createdAt: order, _id: order } as const;
  const found: Job[] = [];
  // Each batch is a separate message, and between two of them other work gets its turn.
  const cursor = jobs.find(filter, { projection: exceptText }).sort(sort).limit(limit);
  for await (const doc of cursor.batchSize(jobsReadAtOnce)) found.push(jobWithoutTextOf(doc));
  return before ? found.reverse() : found;
}

/** The condition on the places of a query's jobs. */
function between(query: JobsQuery): Filter<JobDocument> {
  const { above, below } = boundsOf(query);
  if (!above && !below) return {};
  const beyond = (side: "$gt" | "$lt", { createdAt, jobId }: JobPlace) => ({
    $or: [{ createdAt: { [side]: createdAt } }, { _id: { [side]: jobId } }],
  });
  return {
    createdAt: {
      ...(above && { $gte: above.createdAt }),
      ...(below && { $lte: below.createdAt }),
    },
    $and: [...(above ? [beyond("$gt", above)] : []), ...(below ? [beyond("$lt", below)] : [])],
  } as Filter<JobDocument>;
}

/** Takes due jobs of each state. Looks again where others took some of the jobs that it had found. */
async function takeDue(db: MongoDatabase, jobs: Jobs, query: DueQuery): Promise<Job[]> {
  // Mostly no job is due, or only jobs of one state. One extra command finds out that none is.
  if (!(await isAnyDue(db, jobs, query.states, query.now))) return [];
  const ofEach = await Promise.all(query.states.map((state) => takeOf(db, jobs, state, query)));
  return ofEach.flat();
}

async function takeOf(
  db: MongoDatabase,
  jobs: Jobs,
  state: JobState,
  { now, until, limit }: DueQuery,
): Promise<Job[]> {
  const taken: Job[] = [];
  for (let round = 0; round < maxTakeRounds && taken.length < limit; round++) {
    const some = { state, now, until, limit: limit - taken.length };
    const { found, won } = await takeSome(db, jobs, some);
    taken.push(...won);
    if (won.length === found) break;
  }
  return taken;
}

/**
 * Marks the jobs that it found, each only while it is still due. The jobs that then have the mark belong to the taker. A lost answer
 * changes nothing of that.
 */
function takeSome(
  db: MongoDatabase,
  jobs: Jobs,
  { state, now, until, limit }: { state: JobState; now: number; until: number; limit: number },
): Promise<{ found: number; won: Job[] }> {
  const taken = new (mongodb().ObjectId)();
  let ids: string[] | undefined;
  return db.attempt(async () => {
    ids ??= await findDue(jobs, state, now, limit);
    if (ids.length === 0) return { found: 0, won: [] };
    await jobs.updateMany(
      { _id: { $in: ids }, state, dueAt: { $lte: now } },
      { $set: { dueAt: until, taken }, $inc: { v: 1 } },
    );
    const byId = new Map<string, Job>();
    // Each batch is a separate message, and between two of them other work gets its turn.
    for await (const doc of jobs.find({ _id: { $in: ids }, taken }).batchSize(jobsReadAtOnce)) {
      byId.set(doc._id, jobOf(doc));
    }
    // Another process drove on a job that has another time by now.
    const won = ids.flatMap((id) => byId.get(id) ?? []).filter(({ dueAt }) => dueAt === until);
    return { found: ids.length, won };
  });
}

/** See JobStore. */
async function bringForward(db: MongoDatabase, jobs: Jobs, now: number, at: number): Promise<void> {
  const ofKinds = { $in: [...mediaKinds] };
  const leased = {
    "spec.kind": ofKinds,
    state: "running",
    "lease.until": { $gt: latestLease(now) },
  };
  const set = (fields: object) => ({ $set: fields, $inc: { v: 1 } });
  await db.attempt(async () => {
    for (const [state, after] of latestDue(now)) {
      await jobs.updateMany({ state, dueAt: { $gt: after } }, set({ dueAt: at }));
    }
    await jobs.updateMany(leased as Filter<JobDocument>, set({ "lease.until": at }));
  });
}

/** See JobStore. */
async function isAnyDue(
  db: MongoDatabase,
  jobs: Jobs,
  states: readonly JobState[],
  now: number,
): Promise<boolean> {
  if (states.length === 0) return false;
  const filter = { state: { $in: [...states] }, dueAt: { $lte: now } };
  return db.attempt(async () => (await jobs.findOne(filter, { projection: { _id: 1 } })) !== null);
}

async function findDue(jobs: Jobs, state: JobState, now: number, limit: number): Promise<string[]> {
  const found = await jobs
    .find({ state, dueAt: { $lte: now } }, { projection: { _id: 1 } })
    .sort({ dueAt: 1 })
    .limit(limit)
    .toArray();
  return found.map(({ _id }) => _id);
}

const counted = { jobs: { $sum: 1 }, oldestCreatedAt: { $min: "$createdAt" } };
// However many jobs wait, only their indexes are read. There are never many other jobs.
const queued = (which: Document): Document[] => [
  { $match: { "spec.kind": { $in: [...mediaKinds] }, ...which } },
  { $project: { _id: 0, "spec.kind": 1, createdAt: 1 } },
  { $group: { _id: { kind: "$spec.kind", state: "queued" }, ...counted } },
];
const claimable = queued({ lane: { $gt: "" } });
const parked = queued({ parked: true });
const moving: Document[] = [
  {
    $match: {
      state: { $in: ["reserving", "running", "settling", "failing"] },
      dueAt: { $gte: 0 },
    },
  },
  { $group: { _id: { kind: "$spec.kind", state: "$state" }, ...counted } },
];

/** Open jobs by kind and state. */
async function readCensus(jobs: Collection<JobDocument>): Promise<Standing[]> {
  const groups = await Promise.all(
    [claimable, parked, moving].map((steps) => jobs.aggregate(steps).toArray()),
  );
  const all = new Map<string, Standing>();
  for (const { _id, jobs: count, oldestCreatedAt } of groups.flat()) {
    const { kind, state } = _id;
    const known = all.get(`${kind} ${state}`);
    all.set(`${kind} ${state}`, {
      kind,
      state,
      jobs: Number(count) + (known?.jobs ?? 0),
      oldestCreatedAt: Math.min(Number(oldestCreatedAt), known?.oldestCreatedAt ?? Infinity),
    });
  }
  return [...all.values()];
}
