import type { SqliteDatabase, SqlRunner } from "#kit/sqlite.ts";
import { readCensus } from "./census-sqlite.ts";
import { createFairest, isAnyClaimable } from "./claim-sqlite.ts";
import { isTerminal, type Job, type JobState, mediaKinds } from "./job.ts";
import { type JobCommand, step } from "./lifecycle.ts";
import { latestDue, latestLease } from "./put-off.ts";
import {
  deleteJob,
  insertJob,
  readJob,
  readJobInSlot,
  readJobOfOutput,
  updateJob,
} from "./rows-sqlite.ts";
import { jobsSchema, jobsSchemaName } from "./schema-sqlite.ts";
import type { JobStore, JobsQuery } from "./store.ts";

/**
 * Jobs in the process's SQLite file. Each transition reads the job, steps it and writes it back inside one transaction;
 * those of a turn of the event loop share a commit.
 */
export function createSqliteJobStore(db: SqliteDatabase): JobStore {
  const fairest = createFairest();
  return {
    async open() {
      db.migrate(jobsSchemaName, jobsSchema);
    },
    insert: (job) => db.write((tx) => insert(tx, job)),
    apply: (jobId, command) => db.write((tx) => apply(tx, jobId, command)),
    claim: (query) =>
      db.write((tx) => {
        const jobId = fairest(tx, query);
        const { owner, now, leasesOverAt } = query;
        const command = { kind: "claim", owner, now, leasesOverAt } as const;
        return jobId === undefined ? undefined : apply(tx, jobId, command);
      }),
    isAnyClaimable: async (kinds, now) => kinds.some((kind) => isAnyClaimable(db, kind, now)),
    async takeDue({ states, now, until, limit }) {
      // Hardly ever there: without, no transaction is begun.
      if (!isAnyDue(db, states, now)) return [];
      return db.write((tx) =>
        states
          .flatMap((state) => tx.all(dueSql, state, now, limit))
          .map((row) => apply(tx, String(row.job_id), { kind: "defer", until }))
          .filter((job) => job !== undefined),
      );
    },
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
    findBySlot: async ({ scope, key }) => readJobInSlot(db, scope, key),
    findByOutput: async (fileId) => readJobOfOutput(db, fileId),
    list: async (query) => list(db, query),
    census: async () => readCensus(db),
  };
}

const dueSql =
  "SELECT job_id FROM media_job WHERE state = ? AND due_at <= ? ORDER BY due_at LIMIT ?";

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

function forget(tx: SqlRunner, jobId: string, now: number): boolean {
  const job = readJob(tx, jobId);
  if (!job) return false;
  const isOver = isTerminal(job) && job.expiresAt !== undefined && job.expiresAt <= now;
  if (job.state !== "rejected" && !isOver) return false;
  deleteJob(tx, job);
  return true;
}

/** One index seek for each state and kind, merged: so no state's jobs are read to skip another's. */
function list(db: SqlRunner, { of, states, kind, after, limit }: JobsQuery): Job[] {
  const [column, owner] = "keyId" in of ? ["key_id", of.keyId] : ["account_id", of.accountId];
  const kinds = kind === undefined ? mediaKinds : [kind];
  const at = after ?? { createdAt: Number.MAX_SAFE_INTEGER, jobId: "" };
  const found = states.flatMap((state) =>
    kinds.flatMap((one) =>
      db.all(
        `SELECT job_id, created_at FROM media_job WHERE ${column} = ? AND state = ? AND kind = ?
           AND (created_at, job_id) < (?, ?) ORDER BY created_at DESC, job_id DESC LIMIT ?`,
        owner,
        state,
        one,
        at.createdAt,
        at.jobId,
        limit,
      ),
    ),
  );
  return found
    .map((row) => ({ jobId: String(row.job_id), createdAt: Number(row.created_at) }))
    .sort((a, b) => b.createdAt - a.createdAt || (a.jobId < b.jobId ? 1 : -1))
    .slice(0, limit)
    .flatMap(({ jobId }) => readJob(db, jobId) ?? []);
}
