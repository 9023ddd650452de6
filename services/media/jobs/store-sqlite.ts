// The store of jobs in SQLite: transitions, lists, sweeps. `store-mongo.ts` is the other store.

import { turn } from "#kit/base/in-turns.ts";
import type { SqliteDatabase, SqlRunner } from "#kit/store/sqlite.ts";
import { jobsReadAtOnce } from "../limits.ts";
import type { Standing } from "./census.ts";
import { isTerminal, type Job, type JobHead, type JobState, mediaKinds } from "./job.ts";
import { type JobCommand, step } from "./lifecycle.ts";
import { type RenewCommand, stepRenewed } from "./renewals.ts";
import {
  boundsOf,
  type DueQuery,
  type JobPlace,
  type JobStore,
  type JobsQuery,
  latestDue,
  latestLease,
} from "./store.ts";
import { createFairest, isAnyClaimable, readWaitingLine } from "./store-sqlite-claims.ts";
import {
  deleteJob,
  insertJob,
  jobsSchema,
  jobsSchemaName,
  readHead,
  readJob,
  readJobInSlot,
  readJobOfOutput,
  readJobWithoutText,
  readMarks,
  updateHead,
  updateJob,
} from "./store-sqlite-rows.ts";

/**
 * Jobs in the process's SQLite file. Each transition reads the job, steps it and writes it back inside one transaction. Transactions of
 * one turn of the event loop share a commit.
 */
export function createSqliteJobStore(db: SqliteDatabase): JobStore {
  const fairest = createFairest();
  const peeked = createFairest();
  return {
    async open() {
      db.migrate(jobsSchemaName, jobsSchema);
    },
    insert: (job) => db.write((tx) => insert(tx, job)),
    apply: (jobId, command) => db.write((tx) => apply(tx, jobId, command)),
    renew: (jobId, command) => db.write((tx) => renew(tx, jobId, command)),
    claim: (query) =>
      db.write((tx) => {
        const jobId = fairest(tx, query);
        const { owner, now, leasesOverAt } = query;
        const command = { kind: "claim", owner, now, leasesOverAt } as const;
        return jobId === undefined ? undefined : apply(tx, jobId, command);
      }),
    peek: async (query) => {
      const jobId = peeked(db, query);
      return jobId === undefined ? undefined : readJob(db, jobId);
    },
    isAnyClaimable: async (kinds, now) => kinds.some((kind) => isAnyClaimable(db, kind, now)),
    takeDue: (query) => takeDue(db, query),
    async bringForward(now, at) {
      for (const [state, after] of latestDue(now)) {
        if (!db.get(putOffSql, state, after)) continue;
        await db.write((tx) => tx.run(bringForwardSql, at, state, after));
      }
      const after = latestLease(now);
      for (const kind of mediaKinds) {
        if (!db.get(longLeaseSql, kind, after)) continue;
        await db.write((tx) => tx.run(shortenSql, at, kind, after));
      }
    },
    isAnyDue: async (states, now) => isAnyDue(db, states, now),
    forget: (jobId, now) => db.write((tx) => forget(tx, jobId, now)),
    find: async (jobId) => readJob(db, jobId),
    findWithoutText: async (jobId) => readJobWithoutText(db, jobId),
    findBySlot: async ({ scope, key }) => readJobInSlot(db, scope, key),
    findByOutput: async (fileId) => readJobOfOutput(db, fileId),
    list: (query) => list(db, query),
    surplus: async ({ accountId, state, kind, newest, limit }) =>
      db.all(surplusSql, accountId, state, kind, limit, newest).map((row) => String(row.job_id)),
    runningFences: async (jobIds) => {
      const rows = db.all(fencesSql, JSON.stringify(jobIds));
      return new Map(rows.map((row) => [String(row.job_id), Number(row.fence)]));
    },
    marks: async (jobIds) => readMarks(db, jobIds),
    unannounced: async (limit) =>
      db.all(unannouncedSql, limit).flatMap((row) => readJob(db, String(row.job_id)) ?? []),
    line: (kind) => readWaitingLine(db, kind),
    census: async () => readCensus(db),
  };
}

const dueSql =
  "SELECT job_id FROM media_job WHERE state = ? AND due_at <= ? ORDER BY due_at LIMIT ?";

const deferSql = "UPDATE media_job SET due_at = ? WHERE job_id = ?";

const surplusSql = `SELECT job_id FROM media_job WHERE account_id = ? AND state = ? AND kind = ?
  ORDER BY created_at DESC, job_id DESC LIMIT ? OFFSET ?`;

const unannouncedSql = "SELECT job_id FROM media_job WHERE unannounced = 1 LIMIT ?";
const fencesSql = `SELECT job_id, fence FROM media_job
  WHERE job_id IN (SELECT value FROM json_each(?)) AND state = 'running'`;

const putOffSql = "SELECT 1 FROM media_job WHERE state = ? AND due_at > ? LIMIT 1";
const bringForwardSql = "UPDATE media_job SET due_at = ? WHERE state = ? AND due_at > ?";
const longLeaseSql =
  "SELECT 1 FROM media_job WHERE state = 'running' AND kind = ? AND lease_until > ? LIMIT 1";
const shortenSql =
  "UPDATE media_job SET lease_until = ? WHERE state = 'running' AND kind = ? AND lease_until > ?";

function isAnyDue(db: SqliteDatabase, states: readonly JobState[], now: number): boolean {
  return states.some((state) => db.get(dueSql, state, now, 1));
}

function insert(tx: SqlRunner, job: Job): Job | undefined {
  if (insertJob(tx, job)) return undefined;
  const holder = job.slot && readJobInSlot(tx, job.slot.scope, job.slot.key);
  return holder ?? readJob(tx, job.jobId);
}

function apply(tx: SqlRunner, jobId: string, command: JobCommand): Job | undefined {
  const job = readJob(tx, jobId);
  const next = job && step(job, command);
  if (next) updateJob(tx, job, next);
  return next;
}

function renew(tx: SqlRunner, jobId: string, command: RenewCommand): JobHead | undefined {
  const head = readHead(tx, jobId);
  const next = head && stepRenewed(head, command);
  if (next && next !== head) updateHead(tx, next);
  return next;
}

/** All are taken at once, by index, and read in turns. A job that was driven on in between has another time by then. */
async function takeDue(
  db: SqliteDatabase,
  { states, now, until, limit }: DueQuery,
): Promise<Job[]> {
  // Due jobs are rare. Without any, no transaction is begun.
  if (!isAnyDue(db, states, now)) return [];
  const ids = await db.write((tx) => {
    const found = states.flatMap((state) => tx.all(dueSql, state, now, limit));
    return found.map((row) => String(row.job_id)).filter((id) => tx.run(deferSql, until, id) > 0);
  });
  const taken: Job[] = [];
  for (const [index, jobId] of ids.entries()) {
    if (index > 0 && index % jobsReadAtOnce === 0) await turn();
    const job = readJob(db, jobId);
    if (job?.dueAt === until) taken.push(job);
  }
  return taken;
}

function forget(tx: SqlRunner, jobId: string, now: number): boolean {
  const job = readJob(tx, jobId);
  if (!job) return false;
  const hasEnded = isTerminal(job) || job.state === "deleted";
  const isOver = hasEnded && job.expiresAt !== undefined && job.expiresAt <= now;
  if (job.state !== "rejected" && !isOver) return false;
  deleteJob(tx, job);
  return true;
}

/**
 * The places of all are found at once, by index, and their jobs are read in turns. Where one changed in between, another takes its
 * place.
 */
async function list(db: SqlRunner, query: JobsQuery): Promise<Job[]> {
  const found: Job[] = [];
  for (let rest = query; ; ) {
    const places = listPlaces(db, rest);
    const nearestFirst = query.before ? places.toReversed() : places;
    for (const [index, { jobId }] of nearestFirst.entries()) {
      if (index > 0 && index % jobsReadAtOnce === 0) await turn();
      const job = readJobWithoutText(db, jobId);
      if (job && query.states.includes(job.state)) found.push(job);
    }
    const last = nearestFirst.at(-1);
    const limit = query.limit - found.length;
    if (!last || places.length < rest.limit || limit === 0) break;
    rest = { ...rest, [query.before ? "before" : "after"]: last, limit };
  }
  return query.before ? found.reverse() : found;
}

/**
 * Newest first. There is one index seek for each state and kind, and the results are merged. So no state's jobs are read to skip
 * another's.
 */
function listPlaces(db: SqlRunner, query: JobsQuery): JobPlace[] {
  const { of, states, kind, model, before, limit } = query;
  const [owner, owned]: [string, string[]] =
    of === "all"
      ? ["", []]
      : "keyId" in of
        ? ["key_id = ? AND", [of.keyId]]
        : ["account_id = ? AND", [of.accountId]];
  const kinds = kind === undefined ? mediaKinds : [kind];
  const { above, below } = boundsOf(query);
  const places = [
    ...(above ? [above.createdAt, above.jobId] : []),
    ...(below ? [below.createdAt, below.jobId] : []),
  ];
  const order = before ? "ASC" : "DESC";
  const sql = `SELECT job_id, created_at FROM media_job
    WHERE ${owner} ${model === undefined ? "" : "model = ? AND"} state = ? AND kind = ?
      ${above ? "AND (created_at, job_id) > (?, ?)" : ""} ${below ? "AND (created_at, job_id) < (?, ?)" : ""}
    ORDER BY created_at ${order}, job_id ${order} LIMIT ?`;
  const which = model === undefined ? owned : [...owned, model];
  const found = states.flatMap((state) =>
    kinds.flatMap((one) => db.all(sql, ...which, state, one, ...places, limit)),
  );
  const newestFirst = found
    .map((row) => ({ jobId: String(row.job_id), createdAt: Number(row.created_at) }))
    .sort((a, b) => b.createdAt - a.createdAt || (a.jobId < b.jobId ? 1 : -1));
  return before ? newestFirst.slice(-limit) : newestFirst.slice(0, limit);
}

// However many jobs wait, only indexes are read (the planner would read the rows). There are never many other jobs.
const queuedSql = (parked: 0 | 1) => `SELECT kind, count(*) AS jobs, min(created_at) AS oldest
  FROM media_job INDEXED BY media_job_${parked ? "parked" : "waiting"}
  WHERE state = 'queued' AND parked = ${parked} GROUP BY kind`;
const waitingSql = `SELECT kind, 'queued' AS state, sum(jobs) AS jobs, min(oldest) AS oldest
  FROM (${queuedSql(0)} UNION ALL ${queuedSql(1)}) GROUP BY kind`;
const movingSql = `SELECT kind, state, count(*) AS jobs, min(created_at) AS oldest FROM media_job
  WHERE state IN ('reserving', 'running', 'settling', 'failing') GROUP BY kind, state`;

/** Open jobs by kind and state. */
function readCensus(db: SqlRunner): Standing[] {
  return [...db.all(waitingSql), ...db.all(movingSql)].map((row) => ({
    kind: row.kind as Standing["kind"],
    state: row.state as Standing["state"],
    jobs: Number(row.jobs),
    oldestCreatedAt: Number(row.oldest),
  }));
}
