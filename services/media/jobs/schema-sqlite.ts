/** Name of these tables in the file's register of versions. */
export const jobsSchemaName = "media_jobs";

/**
 * Steps of the tables. What a job is to do hardly ever changes and may be long, so it stands apart from what changes at every
 * heartbeat. Each search of the port has its index.
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
];
