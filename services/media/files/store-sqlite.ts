// The store of account files in SQLite, with its tables. `store-mongo.ts` is the other store.

import type { SqliteDatabase, SqlRow, SqlRunner } from "#kit/store/sqlite.ts";
import type { AccountFile, FileOrigin, FileState } from "./file.ts";
import type { Begun, FilePage, FileStore, JobPin, NewFile } from "./store.ts";

/** Tables of the account files, step by step. A released step is never changed. */
const filesSchema: readonly string[] = [
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

/** The files in SQLite. A transition is one transaction. */
export function createSqliteFileStore(db: SqliteDatabase): FileStore {
  db.migrate("media_files", filesSchema);
  return {
    begin: (file) => db.write((tx) => begin(tx, file)),
    publish: ({ fileId, storageId }) =>
      db.write((tx) => {
        if (tx.run(publishSql, fileId, storageId) === 1) return true;
        return tx.get(attemptSql, fileId, storageId)?.state === "ready";
      }),
    drop: ({ fileId, storageId }, now) =>
      db.write((tx) => {
        if (tx.run(dropSql, now, fileId, storageId) === 0) return false;
        tx.run("DELETE FROM media_file_pin WHERE file_id = ?", fileId);
        return true;
      }),
    remove: (accountId, fileId, now) =>
      db.write((tx) => {
        if (tx.run(removeSql, now, fileId, accountId) === 0) return undefined;
        return findFile(tx, accountId, fileId);
      }),
    erase: async ({ fileId, storageId }, keepUntil) => {
      await db.write((tx) => tx.run(eraseSql, keepUntil, fileId, storageId));
    },
    defer: async ({ fileId, storageId }, dueAt) => {
      await db.write((tx) => tx.run(deferSql, dueAt, fileId, storageId));
    },
    pin: (accountId, fileId, pin) => db.write((tx) => pinFile(tx, accountId, fileId, pin)),
    pinned: async (jobId) => {
      const rows = db.all(pinnedSql, jobId);
      return new Map(rows.map((row) => [Number(row.ref_index), fileOf(row)]));
    },
    pinsOf: async (fileId) => db.all(pinsOfSql, fileId).map((row) => String(row.job_id)),
    unpin: (jobId, now) =>
      db.write((tx) => {
        tx.run(dueOfJobSql, now, jobId);
        tx.run("DELETE FROM media_file_pin WHERE job_id = ?", jobId);
      }),
    find: async (accountId, fileId) => findFile(db, accountId, fileId),
    findBySlot: async ({ keyId, key }) => {
      const row = db.get(slotSql, keyId, key);
      return row && { file: fileOf(row), fingerprint: String(row.fingerprint) };
    },
    list: async (accountId, page) => list(db, accountId, page),
    count: async (accountId) => Number(db.get(countSql, accountId)?.n ?? 0),
    isReferenced: async (storageId) => db.get(referencedSql, storageId) !== undefined,
    due: async (now, limit) => db.all(dueSql, now, limit).map(fileOf),
    forget: (now, limit) => db.write((tx) => tx.run(forgetSql, now, limit)),
  };
}

const insertSql = `INSERT INTO media_file (file_id, account_id, origin, state, storage_id, file_name, purpose, mime_type,
  size_bytes, sha256, width, height, created_at, due_at, idem_key_id, idem_key, fingerprint)
  VALUES (?, ?, ?, 'storing', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const attemptSql = "SELECT * FROM media_file WHERE file_id = ? AND storage_id = ?";
const slotSql = "SELECT * FROM media_file WHERE idem_key_id = ? AND idem_key = ?";
const sameBytesSql = `SELECT * FROM media_file WHERE account_id = ?1 AND sha256 = ?2 AND state = 'ready'
  UNION ALL SELECT * FROM media_file
  WHERE account_id = ?1 AND sha256 = ?2 AND origin = 'import' AND state IN ('storing', 'ready') LIMIT 1`;
const publishSql = `UPDATE media_file SET state = 'ready', due_at = NULL
  WHERE file_id = ? AND storage_id = ? AND state = 'storing'`;
const deletedSql = `UPDATE media_file SET state = 'deleted', due_at = ?, idem_key_id = NULL, idem_key = NULL,
  fingerprint = NULL WHERE file_id = ?`;
const dropSql = `${deletedSql} AND storage_id = ? AND state = 'storing'`;
const removeSql = `${deletedSql} AND account_id = ? AND state = 'ready'`;
const eraseSql = `UPDATE media_file SET state = 'gone', file_name = '', due_at = ?
  WHERE file_id = ? AND storage_id = ? AND state = 'deleted'`;
const deferSql = `UPDATE media_file SET due_at = ?
  WHERE file_id = ? AND storage_id = ? AND state = 'deleted'`;
const pinnedSql = `SELECT f.*, p.ref_index FROM media_file_pin p JOIN media_file f ON f.file_id = p.file_id
  WHERE p.job_id = ? AND f.state IN ('ready', 'deleted')`;
const pinsOfSql = "SELECT DISTINCT job_id FROM media_file_pin WHERE file_id = ?";
const dueOfJobSql = `UPDATE media_file SET due_at = ? WHERE state = 'deleted'
  AND file_id IN (SELECT file_id FROM media_file_pin WHERE job_id = ?)`;
const countSql = `SELECT count(*) AS n FROM media_file INDEXED BY media_file_list
  WHERE account_id = ? AND state = 'ready'`;
const referencedSql = `SELECT 1 FROM media_file WHERE storage_id = ? AND state <> 'gone'`;
const dueSql = `SELECT * FROM media_file WHERE state IN ('storing', 'deleted') AND due_at <= ?
  ORDER BY due_at LIMIT ?`;
const forgetSql = `DELETE FROM media_file WHERE file_id IN
  (SELECT file_id FROM media_file WHERE state = 'gone' AND due_at <= ? LIMIT ?)`;

function begin(tx: SqlRunner, file: NewFile): Begun {
  const old = tx.get("SELECT * FROM media_file WHERE file_id = ?", file.fileId);
  if (old?.storage_id === file.storageId) return { kind: "begun" };
  const taken = (old && old.state !== "gone" ? old : undefined) ?? inItsPlace(tx, file);
  if (taken) {
    const fingerprint = taken.fingerprint === null ? undefined : String(taken.fingerprint);
    return { kind: "taken", file: fileOf(taken), fingerprint };
  }
  if (old) tx.run("DELETE FROM media_file WHERE file_id = ?", file.fileId);
  tx.run(
    insertSql,
    file.fileId,
    file.accountId,
    file.origin,
    file.storageId,
    file.fileName,
    file.purpose,
    file.mimeType,
    file.sizeBytes,
    file.sha256,
    file.width,
    file.height,
    file.createdAt,
    file.leaseUntil,
    file.idempotency?.keyId ?? null,
    file.idempotency?.key ?? null,
    file.idempotency?.fingerprint ?? null,
  );
  if (file.pin) addPin(tx, file.fileId, file.pin);
  return { kind: "begun" };
}

function inItsPlace(tx: SqlRunner, file: NewFile): SqlRow | undefined {
  const { idempotency, origin, accountId, sha256 } = file;
  if (idempotency) return tx.get(slotSql, idempotency.keyId, idempotency.key);
  return origin === "import" ? tx.get(sameBytesSql, accountId, sha256) : undefined;
}

function pinFile(
  tx: SqlRunner,
  accountId: string,
  fileId: string,
  pin: JobPin,
): AccountFile | undefined {
  const file = findFile(tx, accountId, fileId);
  if (file?.state === "deleted") {
    const own = tx.get(
      "SELECT file_id FROM media_file_pin WHERE job_id = ? AND ref_index = ?",
      pin.jobId,
      pin.index,
    );
    return own?.file_id === fileId ? file : undefined;
  }
  if (file?.state !== "ready") return undefined;
  addPin(tx, fileId, pin);
  return file;
}

function addPin(tx: SqlRunner, fileId: string, { jobId, index }: JobPin): void {
  tx.run("INSERT OR REPLACE INTO media_file_pin VALUES (?, ?, ?)", jobId, index, fileId);
}

function findFile(runner: SqlRunner, accountId: string, fileId: string): AccountFile | undefined {
  const row = runner.get(
    "SELECT * FROM media_file WHERE file_id = ? AND account_id = ?",
    fileId,
    accountId,
  );
  return row && fileOf(row);
}

function list(db: SqlRunner, accountId: string, page: FilePage): AccountFile[] | undefined {
  const { after, limit, purpose, ascending } = page;
  const from = after === undefined ? undefined : findFile(db, accountId, after);
  if (after !== undefined && (!from || from.state === "storing")) return undefined;
  const [sign, order] = ascending ? [">", "ASC"] : ["<", "DESC"];
  const rows = db.all(
    `SELECT * FROM media_file WHERE account_id = ? AND state = 'ready'
     ${purpose === undefined ? "" : "AND purpose = ?"}
     ${from ? `AND (created_at, file_id) ${sign} (?, ?)` : ""}
     ORDER BY created_at ${order}, file_id ${order} LIMIT ?`,
    accountId,
    ...(purpose === undefined ? [] : [purpose]),
    ...(from ? [from.createdAt, from.fileId] : []),
    limit,
  );
  return rows.map(fileOf);
}

/** A row as a file. */
function fileOf(row: SqlRow): AccountFile {
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
