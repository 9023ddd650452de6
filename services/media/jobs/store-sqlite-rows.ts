// Declares the tables of jobs in SQLite, and reads and writes single jobs.

import { fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import type { SqlRow, SqlRunner, SqlValue } from "#kit/store/sqlite.ts";
import { ModelCallSchema, UpstreamSchema } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import {
  isParked,
  isUnannounced,
  type Job,
  type JobHead,
  type JobSpec,
  type JobState,
  textPaths,
  upstreamOf,
  withoutText,
} from "./job.ts";
import { markFrom } from "./marks.ts";

/** Name of these tables in the file's register of versions. */
export const jobsSchemaName = "media_jobs";

/**
 * Steps of the tables. A spec hardly ever changes and may be long, so it is apart from the fields that change at every heartbeat. Each
 * search of the port has its index.
 */
export const jobsSchema: readonly string[] = [
  `CREATE TABLE media_job (
     job_id TEXT PRIMARY KEY,
     account_id TEXT NOT NULL,
     key_id TEXT NOT NULL,
     slot_scope TEXT,
     slot_key TEXT,
     fingerprint TEXT NOT NULL,
     kind TEXT NOT NULL,
     model TEXT NOT NULL,
     upstream TEXT NOT NULL,
     retry_of TEXT,
     created_at INTEGER NOT NULL,
     state TEXT NOT NULL,
     pinned TEXT,
     pins_held INTEGER NOT NULL,
     attempts INTEGER NOT NULL,
     fence INTEGER NOT NULL,
     lease_owner TEXT,
     lease_until INTEGER NOT NULL,
     lease_counted INTEGER NOT NULL,
     upstream_index INTEGER NOT NULL,
     resume_id TEXT,
     progress INTEGER NOT NULL,
     outputs TEXT NOT NULL,
     failure TEXT,
     charged INTEGER,
     publications INTEGER NOT NULL,
     due_at INTEGER,
     deadline INTEGER NOT NULL,
     started_at INTEGER,
     claimed_at INTEGER,
     completed_at INTEGER,
     expires_at INTEGER,
     events TEXT NOT NULL
   );
   CREATE TABLE media_job_spec (job_id TEXT PRIMARY KEY, spec TEXT NOT NULL);
   CREATE UNIQUE INDEX media_job_slot ON media_job (slot_scope, slot_key) WHERE slot_key IS NOT NULL;
   CREATE INDEX media_job_due ON media_job (state, due_at);
   CREATE INDEX media_job_waiting ON media_job (kind, model, upstream, account_id, created_at)
     WHERE state = 'queued';
   CREATE INDEX media_job_running ON media_job (kind, account_id, model) WHERE state = 'running';
   CREATE INDEX media_job_lost ON media_job (kind, lease_until) WHERE state = 'running';
   CREATE INDEX media_job_served ON media_job (kind, account_id, claimed_at);
   CREATE INDEX media_job_of_key ON media_job (key_id, state, kind, created_at, job_id);
   CREATE INDEX media_job_of_account ON media_job (account_id, state, kind, created_at, job_id);`,
  `ALTER TABLE media_job ADD COLUMN sent INTEGER NOT NULL DEFAULT 0;
   ALTER TABLE media_job ADD COLUMN wait TEXT;
   ALTER TABLE media_job ADD COLUMN parked INTEGER NOT NULL DEFAULT 0;
   DROP INDEX media_job_waiting;
   CREATE INDEX media_job_waiting ON media_job (kind, model, upstream, account_id, created_at)
     WHERE state = 'queued' AND parked = 0;
   CREATE INDEX media_job_parked ON media_job (kind, created_at)
     WHERE state = 'queued' AND parked = 1;
   CREATE TABLE media_job_output (file_id TEXT PRIMARY KEY, job_id TEXT NOT NULL) STRICT, WITHOUT ROWID;
   INSERT INTO media_job_output (file_id, job_id)
     SELECT json_extract(o.value, '$.fileId'), j.job_id FROM media_job j, json_each(j.outputs) o;`,
  `CREATE INDEX media_job_of_key_model ON media_job (key_id, model, state, kind, created_at, job_id);
   CREATE INDEX media_job_of_account_model ON media_job (account_id, model, state, kind, created_at, job_id);`,
  `ALTER TABLE media_job ADD COLUMN webhook TEXT;
   ALTER TABLE media_job ADD COLUMN unannounced INTEGER NOT NULL DEFAULT 0;
   CREATE INDEX media_job_unannounced ON media_job (unannounced) WHERE unannounced = 1;`,
  // For operators, who list the jobs of all accounts.
  "CREATE INDEX media_job_of_all ON media_job (state, kind, created_at, job_id);",
  "ALTER TABLE media_job ADD COLUMN failed_tries TEXT",
];

/** A column of `media_job`, and a job's value for it. */
type Column<J extends JobHead = Job> = readonly [name: string, value: (job: J) => SqlValue];

/** Columns that never change. */
const fixed: readonly Column[] = [
  ["job_id", (job) => job.jobId],
  ["account_id", (job) => job.accountId],
  ["key_id", (job) => job.keyId],
  ["fingerprint", (job) => job.fingerprint],
  ["kind", (job) => job.spec.kind],
  ["model", (job) => job.spec.model],
  ["retry_of", (job) => job.retryOf ?? null],
  ["created_at", (job) => job.createdAt],
];

/** Columns that a command may change, except those that depend on the spec. */
const changingOfHead: readonly Column<JobHead>[] = [
  ["slot_scope", (job) => job.slot?.scope ?? null],
  ["slot_key", (job) => job.slot?.key ?? null],
  ["state", (job) => job.state],
  ["pinned", (job) => (job.pinned ? JSON.stringify(job.pinned) : null)],
  ["pins_held", (job) => Number(job.pinsHeld)],
  ["attempts", (job) => job.attempts],
  ["fence", (job) => job.fence],
  ["lease_owner", (job) => job.lease?.owner ?? null],
  ["lease_until", (job) => job.lease?.until ?? 0],
  ["lease_counted", (job) => Number(job.lease?.counted ?? false)],
  ["upstream_index", (job) => job.upstreamIndex],
  ["resume_id", (job) => job.resumeId ?? null],
  ["sent", (job) => Number(job.sent)],
  ["wait", (job) => (job.wait ? JSON.stringify(job.wait) : null)],
  ["failed_tries", (job) => (job.failedTries ? JSON.stringify(job.failedTries) : null)],
  ["parked", (job) => Number(isParked(job))],
  ["progress", (job) => job.progress],
  ["outputs", (job) => JSON.stringify(job.outputs)],
  ["failure", (job) => (job.failure ? JSON.stringify(job.failure) : null)],
  ["charged", (job) => job.charged ?? null],
  ["publications", (job) => job.publications],
  ["due_at", (job) => job.dueAt ?? null],
  ["deadline", (job) => job.deadline],
  ["started_at", (job) => job.startedAt ?? null],
  ["claimed_at", (job) => job.claimedAt ?? null],
  ["completed_at", (job) => job.completedAt ?? null],
  ["expires_at", (job) => job.expiresAt ?? null],
  ["webhook", (job) => (job.webhook ? JSON.stringify(job.webhook) : null)],
  ["unannounced", (job) => Number(isUnannounced(job))],
  ["events", (job) => JSON.stringify(job.events)],
];

/** Columns that a command may change. */
const changing: readonly Column[] = [
  ...changingOfHead,
  ["upstream", (job) => upstreamOf(job).name],
];
const all = [...fixed, ...changing];
const names = all.map(([name]) => name).join(", ");
const insertJobSql = `INSERT INTO media_job (${names}) VALUES (${all.map(() => "?").join(", ")})
  ON CONFLICT DO NOTHING`;
const insertSpecSql = "INSERT INTO media_job_spec (job_id, spec) VALUES (?, ?)";
const insertOutputSql = "INSERT OR REPLACE INTO media_job_output (file_id, job_id) VALUES (?, ?)";
const deleteOutputSql = "DELETE FROM media_job_output WHERE file_id = ?";
const updateSpecSql = "UPDATE media_job_spec SET spec = ? WHERE job_id = ?";
const updateSql = (columns: readonly Column<never>[]) =>
  `UPDATE media_job SET ${columns.map(([name]) => `${name} = ?`).join(", ")} WHERE job_id = ?`;
const updateJobSql = updateSql(changing);
const updateHeadSql = updateSql(changingOfHead);
const readHeadSql = "SELECT * FROM media_job WHERE job_id = ?";
const marksSql = `SELECT job_id, state, parked, upstream_index, progress, started_at, completed_at, expires_at
  FROM media_job WHERE job_id IN (SELECT value FROM json_each(?))`;
const readJobSql = `SELECT j.*, s.spec FROM media_job j JOIN media_job_spec s USING (job_id)`;

/** SQLite takes the long parts out of the JSON in a third of the time that JavaScript would need for decoding it. */
const readWithoutTextSql = `SELECT j.*, json_remove(s.spec, ${textPaths.map((path) => `'$.${path}'`).join(", ")}) AS spec
  FROM media_job j JOIN media_job_spec s USING (job_id) WHERE job_id = ?`;

/** False where the id or the slot is taken. */
export function insertJob(tx: SqlRunner, job: Job): boolean {
  if (tx.run(insertJobSql, ...all.map(([, value]) => value(job))) === 0) return false;
  tx.run(insertSpecSql, job.jobId, specText(job.spec));
  return true;
}

/** `before`: the job that was read. */
export function updateJob(tx: SqlRunner, before: Job, job: Job): void {
  tx.run(updateJobSql, ...changing.map(([, value]) => value(job)), job.jobId);
  if (job.outputs !== before.outputs) {
    for (const { fileId } of before.outputs) tx.run(deleteOutputSql, fileId);
    for (const { fileId } of job.outputs) tx.run(insertOutputSql, fileId, job.jobId);
  }
  if (job.spec !== before.spec) tx.run(updateSpecSql, specText(job.spec), job.jobId);
}

/** Updates a job whose spec, with the columns that depend on it, and whose outputs are unchanged. */
export function updateHead(tx: SqlRunner, head: JobHead): void {
  tx.run(updateHeadSql, ...changingOfHead.map(([, value]) => value(head)), head.jobId);
}

export function deleteJob(tx: SqlRunner, { jobId, outputs }: Job): void {
  for (const { fileId } of outputs) tx.run(deleteOutputSql, fileId);
  tx.run("DELETE FROM media_job WHERE job_id = ?", jobId);
  tx.run("DELETE FROM media_job_spec WHERE job_id = ?", jobId);
}

export function readJob(tx: SqlRunner, jobId: string): Job | undefined {
  const row = tx.get(`${readJobSql} WHERE job_id = ?`, jobId);
  return row && toJob(row);
}

/** See {@link JobStore.findWithoutText}. */
export function readJobWithoutText(tx: SqlRunner, jobId: string): Job | undefined {
  const row = tx.get(readWithoutTextSql, jobId);
  return row && { ...headOf(row), spec: withoutText(specOf(String(row.spec))) };
}

export function readHead(tx: SqlRunner, jobId: string): JobHead | undefined {
  const row = tx.get(readHeadSql, jobId);
  return row && headOf(row);
}

/** See JobStore. */
export function readMarks(db: SqlRunner, jobIds: readonly string[]): Map<string, string> {
  const marks = db.all(marksSql, JSON.stringify(jobIds)).map((row): [string, string] => {
    const mark = markFrom({
      state: row.state as JobState,
      isParked: row.parked === 1n,
      upstreamIndex: Number(row.upstream_index),
      progress: Number(row.progress),
      startedAt: time(row.started_at),
      completedAt: time(row.completed_at),
      expiresAt: time(row.expires_at),
    });
    return [String(row.job_id), mark];
  });
  return new Map(marks);
}

export function readJobOfOutput(tx: SqlRunner, fileId: string): Job | undefined {
  const row = tx.get("SELECT job_id FROM media_job_output WHERE file_id = ?", fileId);
  return row && readJobWithoutText(tx, String(row.job_id));
}

export function readJobInSlot(tx: SqlRunner, scope: string, key: string): Job | undefined {
  const row = tx.get(`${readJobSql} WHERE slot_scope = ? AND slot_key = ?`, scope, key);
  return row && toJob(row);
}

function toJob(row: SqlRow): Job {
  return { ...headOf(row), spec: specOf(String(row.spec)) };
}

function headOf(row: SqlRow): JobHead {
  const leaseUntil = Number(row.lease_until);
  return {
    jobId: String(row.job_id),
    accountId: String(row.account_id),
    keyId: String(row.key_id),
    slot:
      row.slot_key === null
        ? undefined
        : { scope: String(row.slot_scope), key: String(row.slot_key) },
    fingerprint: String(row.fingerprint),
    retryOf: text(row.retry_of),
    createdAt: Number(row.created_at),
    state: row.state as Job["state"],
    pinned: json(row.pinned),
    pinsHeld: row.pins_held === 1n,
    attempts: Number(row.attempts),
    fence: Number(row.fence),
    lease:
      row.lease_owner === null
        ? undefined
        : {
            owner: String(row.lease_owner),
            until: leaseUntil,
            counted: row.lease_counted === 1n,
          },
    upstreamIndex: Number(row.upstream_index),
    resumeId: text(row.resume_id),
    sent: row.sent === 1n,
    wait: waitOf(row.wait),
    ...(row.failed_tries === null ? {} : { failedTries: json(row.failed_tries) }),
    progress: Number(row.progress),
    outputs: json(row.outputs) ?? [],
    failure: failureOf(row.failure),
    charged: row.charged === null ? undefined : BigInt(row.charged as bigint),
    publications: Number(row.publications),
    dueAt: time(row.due_at),
    deadline: Number(row.deadline),
    startedAt: time(row.started_at),
    claimedAt: time(row.claimed_at),
    completedAt: time(row.completed_at),
    expiresAt: time(row.expires_at),
    webhook: json(row.webhook),
    events: json(row.events) ?? [],
  };
}

type Cell = SqlRow[string] | undefined;

function text(cell: Cell): string | undefined {
  return cell === null || cell === undefined ? undefined : String(cell);
}

function time(cell: Cell): number | undefined {
  return cell === null || cell === undefined ? undefined : Number(cell);
}

function json<T>(cell: Cell): T | undefined {
  return typeof cell === "string" ? (JSON.parse(cell) as T) : undefined;
}

// JSON has no undefined, so missing fields are put back as undefined. So a job that is read equals the one that was written.
function failureOf(cell: Cell): Job["failure"] {
  const failure = json<NonNullable<Job["failure"]>>(cell);
  return failure && { ...failure, param: failure.param };
}

function waitOf(cell: Cell): Job["wait"] {
  const wait = json<NonNullable<Job["wait"]>>(cell);
  return wait && { ...wait, until: wait.until };
}

function specText(spec: JobSpec): string {
  const upstreams = spec.upstreams.map((upstream) => toJson(UpstreamSchema, upstream));
  const call = spec.call && { call: toJson(ModelCallSchema, spec.call) };
  return JSON.stringify({ ...spec, ...call, upstreams, price: String(spec.price) });
}

function specOf(stored: string): JobSpec {
  const spec = JSON.parse(stored);
  return {
    ...spec,
    ...(spec.call && { call: fromJson(ModelCallSchema, spec.call) }),
    price: BigInt(spec.price),
    upstreams: spec.upstreams.map((one: JsonValue) => fromJson(UpstreamSchema, one)),
  };
}
