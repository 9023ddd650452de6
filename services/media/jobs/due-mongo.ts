import type { Collection, Filter } from "mongodb";
import type { MongoDatabase } from "#kit/mongo/connect.ts";
import { mongodb } from "#kit/mongo/driver.ts";
import { jobOf } from "./docs-mongo.ts";
import { type Job, type JobState, mediaKinds } from "./job.ts";
import { maxTakeRounds } from "./limits-mongo.ts";
import { latestDue, latestLease } from "./put-off.ts";
import type { JobDocument } from "./schema-mongo.ts";
import type { DueQuery } from "./store.ts";

type Jobs = Collection<JobDocument>;

/** Takes due jobs of each state; looks again where others took some of what it had found. */
export async function takeDue(db: MongoDatabase, jobs: Jobs, query: DueQuery): Promise<Job[]> {
  // What is due is mostly in one of the states, or in none: one command more tells of none.
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
 * What is found is marked at once, each job only while it is still due; those that then bear the mark are the taker's. A
 * lost answer changes nothing of that.
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
    const docs = await jobs.find({ _id: { $in: ids }, taken }).toArray();
    const byId = new Map(docs.map((doc) => [doc._id, jobOf(doc)]));
    // What has another time by now was driven on by somebody else.
    const won = ids.flatMap((id) => byId.get(id) ?? []).filter(({ dueAt }) => dueAt === until);
    return { found: ids.length, won };
  });
}

/** As JobStore has it. */
export async function bringForward(
  db: MongoDatabase,
  jobs: Jobs,
  now: number,
  at: number,
): Promise<void> {
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

/** As JobStore has it. */
export async function isAnyDue(
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
