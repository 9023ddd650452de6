import { fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import type { SqlRow, SqlRunner, SqlValue } from "#kit/sqlite.ts";
import { UpstreamSchema } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { isParked, type Job, type JobSpec, upstreamOf } from "./job.ts";

/** A column of `media_job` with what a job has there. */
type Column = readonly [name: string, value: (job: Job) => SqlValue];

/** What never changes. */
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

/** What a command may change. */
const changing: readonly Column[] = [
  ["slot_scope", (job) => job.slot?.scope ?? null],
  ["slot_key", (job) => job.slot?.key ?? null],
  ["upstream", (job) => upstreamOf(job).name],
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
  ["events", (job) => JSON.stringify(job.events)],
];

const all = [...fixed, ...changing];
const names = all.map(([name]) => name).join(", ");
const insertJobSql = `INSERT INTO media_job (${names}) VALUES (${all.map(() => "?").join(", ")})
  ON CONFLICT DO NOTHING`;
const insertSpecSql = "INSERT INTO media_job_spec (job_id, spec) VALUES (?, ?)";
const insertOutputSql = "INSERT OR REPLACE INTO media_job_output (file_id, job_id) VALUES (?, ?)";
const deleteOutputSql = "DELETE FROM media_job_output WHERE file_id = ?";
const updateSpecSql = "UPDATE media_job_spec SET spec = ? WHERE job_id = ?";
const updateJobSql = `UPDATE media_job SET ${changing.map(([name]) => `${name} = ?`).join(", ")}
  WHERE job_id = ?`;
const readJobSql = `SELECT j.*, s.spec FROM media_job j JOIN media_job_spec s USING (job_id)`;

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
    for (const { fileId } of job.outputs) tx.run(insertOutputSql, fileId, job.jobId);
  }
  if (job.spec !== before.spec) tx.run(updateSpecSql, specText(job.spec), job.jobId);
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

export function readJobOfOutput(tx: SqlRunner, fileId: string): Job | undefined {
  const row = tx.get("SELECT job_id FROM media_job_output WHERE file_id = ?", fileId);
  return row && readJob(tx, String(row.job_id));
}

export function readJobInSlot(tx: SqlRunner, scope: string, key: string): Job | undefined {
  const row = tx.get(`${readJobSql} WHERE slot_scope = ? AND slot_key = ?`, scope, key);
  return row && toJob(row);
}

function toJob(row: SqlRow): Job {
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
    spec: specOf(String(row.spec)),
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

// JSON has no undefined: what was left out is put back, so that what comes out is what went in.
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
  return JSON.stringify({ ...spec, upstreams, price: String(spec.price) });
}

function specOf(stored: string): JobSpec {
  const spec = JSON.parse(stored);
  return {
    ...spec,
    price: BigInt(spec.price),
    upstreams: spec.upstreams.map((one: JsonValue) => fromJson(UpstreamSchema, one)),
  };
}
