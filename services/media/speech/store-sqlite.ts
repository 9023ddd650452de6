import { longestDueMs } from "#common/paid-work/limits.ts";
import type { SoundFormat } from "#kit/sound/formats.ts";
import type { SqliteDatabase, SqlRow } from "#kit/store/sqlite.ts";
import type { SpeechIntent, SpeechRecord, SpeechStore } from "./store.ts";

/** Tables, step by step; a step that was shipped is never changed. */
const schema: readonly string[] = [
  `CREATE TABLE media_speech (
    speech_id TEXT PRIMARY KEY,
    file_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    model_id TEXT NOT NULL,
    catalog_version TEXT NOT NULL,
    characters INTEGER NOT NULL,
    price_per_million INTEGER NOT NULL,
    amount INTEGER NOT NULL,
    hold_check_at INTEGER NOT NULL,
    owner TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    status TEXT NOT NULL,
    due_at INTEGER,
    idem_key TEXT,
    fingerprint TEXT,
    size_bytes INTEGER,
    sha256 TEXT,
    duration_seconds REAL
  ) STRICT;
  CREATE UNIQUE INDEX media_speech_slot ON media_speech (key_id, idem_key) WHERE idem_key IS NOT NULL;
  CREATE INDEX media_speech_due ON media_speech (due_at) WHERE due_at IS NOT NULL;`,
  "CREATE INDEX media_speech_at_work ON media_speech (due_at) WHERE status <> 'closed';",
  "CREATE INDEX media_speech_of_key ON media_speech (key_id) WHERE status = 'closed';",
  // Of sounds that stood there before: MP3.
  "ALTER TABLE media_speech ADD COLUMN format TEXT;",
];

/** Speech requests in SQLite: a transition is one statement. While a request is open, `due_at` is its lease. */
export function createSqliteSpeechStore(db: SqliteDatabase): SpeechStore {
  db.migrate("media_speech", schema);
  const change = (sql: string, ...values: (string | number | bigint | null)[]) =>
    db.write((tx) => tx.run(sql, ...values) === 1);
  return {
    open: (intent) =>
      db.write((tx) => {
        if (tx.run(insertSql, ...valuesOf(intent)) === 1) return true;
        return (
          tx.get("SELECT 1 FROM media_speech WHERE speech_id = ?", intent.speechId) !== undefined
        );
      }),
    beat: (speechId, owner, leaseUntil) => change(beatSql, leaseUntil, speechId, owner),
    close(speechId, closer, closing, dueAt) {
      const audio = closing.kind === "settling" ? closing.audio : undefined;
      const [who, value] =
        "owner" in closer ? ["owner = ?", closer.owner] : ["due_at <= ?", closer.leaseOverAt];
      return change(
        `${closeSql} AND ${who}`,
        closing.kind,
        dueAt,
        audio?.sizeBytes ?? null,
        audio?.sha256 ?? null,
        audio?.durationSeconds ?? null,
        audio?.format ?? null,
        audio?.sha256 ?? null,
        speechId,
        value,
      );
    },
    finish: (speechId, expireAt) =>
      db.write((tx) => {
        if (tx.run(finishSql, expireAt ?? null, speechId) === 0) tx.run(releasedSql, speechId);
      }),
    withdraw: async (speechId, owner) => {
      await change(withdrawSql, speechId, owner);
    },
    forget: async (speechId) => {
      await change(forgetSql, speechId);
    },
    defer: async (speechId, dueAt) => {
      await change(deferSql, dueAt, speechId);
    },
    bringForward: async (now, at) => {
      const after = now + longestDueMs;
      // Hardly ever there: without, no transaction is begun.
      if (db.get(isPutOffSql, after)) await db.write((tx) => tx.run(bringForwardSql, at, after));
    },
    find: async (speechId) => {
      const row = db.get("SELECT * FROM media_speech WHERE speech_id = ?", speechId);
      return row && recordOf(row);
    },
    findBySlot: async ({ keyId, key }) => {
      const row = db.get(slotSql, keyId, key);
      return row && recordOf(row);
    },
    closedOf: async (keyIds, limit) =>
      db.all(closedOfSql, JSON.stringify(keyIds), limit).map(recordOf),
    due: async (now, limit) => db.all(dueSql, now, limit).map(recordOf),
  };
}

const insertSql = `INSERT INTO media_speech (speech_id, file_id, account_id, key_id, model_id, catalog_version, characters,
  price_per_million, amount, hold_check_at, owner, opened_at, status, due_at, idem_key, fingerprint)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', ?, ?, ?) ON CONFLICT DO NOTHING`;
const beatSql = `UPDATE media_speech SET due_at = ? WHERE speech_id = ? AND owner = ? AND status = 'open'`;
const closeSql = `UPDATE media_speech SET status = ?, due_at = ?, size_bytes = ?, sha256 = ?, duration_seconds = ?, format = ?,
  idem_key = CASE WHEN ? IS NOT NULL THEN idem_key END WHERE speech_id = ? AND status = 'open'`;
const finishSql = `UPDATE media_speech SET status = 'closed', due_at = ? WHERE speech_id = ? AND status = 'settling'
  AND sha256 IS NOT NULL`;
const releasedSql = `DELETE FROM media_speech WHERE speech_id = ? AND status IN ('settling', 'releasing')`;
const withdrawSql = `DELETE FROM media_speech WHERE speech_id = ? AND owner = ? AND status = 'open'`;
const forgetSql = `DELETE FROM media_speech WHERE speech_id = ? AND status = 'closed'`;
const deferSql = `UPDATE media_speech SET due_at = ? WHERE speech_id = ? AND status <> 'open'`;
const isPutOffSql = "SELECT 1 FROM media_speech WHERE due_at > ? AND status <> 'closed' LIMIT 1";
const bringForwardSql =
  "UPDATE media_speech SET due_at = ? WHERE due_at > ? AND status <> 'closed'";
const slotSql = "SELECT * FROM media_speech WHERE key_id = ? AND idem_key = ?";
const closedOfSql = `SELECT * FROM media_speech WHERE status = 'closed'
  AND key_id IN (SELECT value FROM json_each(?)) LIMIT ?`;
const dueSql = "SELECT * FROM media_speech WHERE due_at <= ? ORDER BY due_at LIMIT ?";

function valuesOf(intent: SpeechIntent) {
  return [
    intent.speechId,
    intent.fileId,
    intent.accountId,
    intent.keyId,
    intent.modelId,
    intent.catalogVersion,
    intent.characters,
    intent.pricePerMillion,
    intent.amount,
    intent.holdCheckAt,
    intent.owner,
    intent.openedAt,
    intent.leaseUntil,
    intent.idempotency?.key ?? null,
    intent.idempotency?.fingerprint ?? null,
  ];
}

function recordOf(row: SqlRow): SpeechRecord {
  return {
    speechId: String(row.speech_id),
    fileId: String(row.file_id),
    accountId: String(row.account_id),
    keyId: String(row.key_id),
    modelId: String(row.model_id),
    catalogVersion: String(row.catalog_version),
    characters: Number(row.characters),
    pricePerMillion: row.price_per_million as bigint,
    amount: row.amount as bigint,
    holdCheckAt: Number(row.hold_check_at),
    owner: String(row.owner),
    openedAt: Number(row.opened_at),
    leaseUntil: row.status === "open" ? Number(row.due_at) : 0,
    status: row.status as SpeechRecord["status"],
    ...(row.idem_key === null
      ? {}
      : { idempotency: { key: String(row.idem_key), fingerprint: String(row.fingerprint) } }),
    ...(row.sha256 === null
      ? {}
      : {
          audio: {
            format: (row.format ?? "mp3") as SoundFormat,
            sizeBytes: Number(row.size_bytes),
            sha256: String(row.sha256),
            durationSeconds: Number(row.duration_seconds),
          },
        }),
  };
}
