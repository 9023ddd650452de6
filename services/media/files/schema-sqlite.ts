import type { SqlRow } from "#kit/sqlite.ts";
import type { AccountFile, FileOrigin, FileState } from "./file.ts";

/** Tables of the account files, step by step; a step that was shipped is never changed. */
export const filesSchema: readonly string[] = [
  `CREATE TABLE media_file (
    file_id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL,
    origin TEXT NOT NULL,
    state TEXT NOT NULL,
    storage_id TEXT NOT NULL UNIQUE,
    file_name TEXT NOT NULL,
    purpose TEXT NOT NULL,
    mime_type TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    due_at INTEGER,
    idem_key_id TEXT,
    idem_key TEXT,
    fingerprint TEXT
  ) STRICT;
  CREATE UNIQUE INDEX media_file_slot ON media_file (idem_key_id, idem_key) WHERE idem_key IS NOT NULL;
  CREATE UNIQUE INDEX media_file_import ON media_file (account_id, sha256)
    WHERE origin = 'import' AND state IN ('storing', 'ready');
  CREATE INDEX media_file_bytes ON media_file (account_id, sha256) WHERE state = 'ready';
  CREATE INDEX media_file_list ON media_file (account_id, created_at, file_id) WHERE state = 'ready';
  CREATE INDEX media_file_purpose ON media_file (account_id, purpose, created_at, file_id) WHERE state = 'ready';
  CREATE INDEX media_file_due ON media_file (due_at) WHERE state IN ('storing', 'deleted');
  CREATE INDEX media_file_gone ON media_file (due_at) WHERE state = 'gone';
  CREATE TABLE media_file_pin (
    job_id TEXT NOT NULL,
    ref_index INTEGER NOT NULL,
    file_id TEXT NOT NULL,
    PRIMARY KEY (job_id, ref_index)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX media_file_pin_file ON media_file_pin (file_id);`,
];

/** A row as a file. */
export function fileOf(row: SqlRow): AccountFile {
  return {
    fileId: String(row.file_id),
    accountId: String(row.account_id),
    origin: row.origin as FileOrigin,
    state: row.state as FileState,
    storageId: String(row.storage_id),
    fileName: String(row.file_name),
    purpose: String(row.purpose),
    mimeType: String(row.mime_type),
    sizeBytes: Number(row.size_bytes),
    sha256: String(row.sha256),
    width: Number(row.width),
    height: Number(row.height),
    createdAt: Number(row.created_at),
  };
}
