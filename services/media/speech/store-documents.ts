// Keeps speech requests as documents, in SQLite or MongoDB. Earlier releases had a table of their own, which the SQL turns into
// documents.

import { longestDueMs } from "#common/paid-work/limits.ts";
import { documentsIn } from "#kit/documents/open.ts";
import type { Component, DocumentsSchema } from "#kit/documents/schema.ts";
import type { Database } from "#kit/store/database.ts";
import type { SpeechAudio, SpeechIntent, SpeechRecord, SpeechStore } from "./store.ts";

/**
 * A request in the database. While it is `open`, `dueAt` is the end of its lease. Once it is `closed`, `dueAt` is the end of its
 * keeping. Absent: it is kept for ever.
 */
interface KeptSpeech
  extends Omit<SpeechRecord, "leaseUntil" | "idempotency" | "audio" | "requestId" | "tries"> {
  dueAt?: number | undefined;
  /** Absent once the slot is free. */
  idem?: { key: string; fingerprint: string } | undefined;
  /** An earlier release wrote no format, and its speeches are MP3. */
  audio?: (Omit<SpeechAudio, "format"> & Partial<Pick<SpeechAudio, "format">>) | undefined;
}

const indexes = {
  idem: { key: { keyId: 1, "idem.key": 1 }, unique: true, where: { "idem.key": "there" } },
  due: { key: { dueAt: 1 }, where: { dueAt: "there" } },
  of_key: { key: { keyId: 1, status: 1 }, sqliteWhere: { status: { is: "closed" } } },
  at_work: { key: { status: 1, dueAt: 1 } },
} as const;

const speechSchema: DocumentsSchema<KeptSpeech, keyof typeof indexes> = {
  name: "media_speech",
  id: "speechId",
  columns: {
    ...{ keyId: "text", owner: "text", status: "text", dueAt: "integer" },
    ...{ idem: "json", "idem.key": "text", audio: "json" },
    ...{ pricePerMillion: "bigint", amount: "bigint" },
  },
  indexes,
  compare: { fields: ["status", "dueAt"] },
  // Where an answer was lost, the process that closed the request finds it by this name.
  changeName: "closing",
};

const tables = [
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
  // Speeches of earlier releases have no format, and are MP3.
  "ALTER TABLE media_speech ADD COLUMN format TEXT;",
  // Rows become documents. The old rows are dropped at once, because data that is deleted from now on must not remain there.
  `ALTER TABLE media_speech RENAME TO media_speech_rows;
   CREATE TABLE media_speech (
     speech_id TEXT PRIMARY KEY,
     key_id TEXT NOT NULL,
     owner TEXT NOT NULL,
     status TEXT NOT NULL,
     due_at INTEGER,
     idem TEXT,
     idem_key TEXT,
     audio TEXT,
     price_per_million INTEGER NOT NULL,
     amount INTEGER NOT NULL,
     doc TEXT NOT NULL
   ) STRICT;
   INSERT INTO media_speech SELECT speech_id, key_id, owner, status, due_at,
     CASE WHEN idem_key IS NOT NULL THEN json_object('key', idem_key, 'fingerprint', fingerprint) END, idem_key,
     CASE WHEN sha256 IS NOT NULL THEN json_object('format', coalesce(format, 'mp3'), 'sizeBytes', size_bytes,
       'sha256', sha256, 'durationSeconds', json(printf('%!.17g', duration_seconds))) END,
     price_per_million, amount,
     json_object('fileId', file_id, 'accountId', account_id, 'modelId', model_id, 'catalogVersion', catalog_version,
       'characters', characters, 'holdCheckAt', hold_check_at, 'openedAt', opened_at)
     FROM media_speech_rows;
   DROP TABLE media_speech_rows;`,
];

/** The tables and documents of speech. */
export const speechComponent: Component = { name: "media_speech", kinds: [speechSchema], tables };

/** The speech requests in a process's database. Each transition is one conditional write. */
export function createSpeechStore(database: Database): SpeechStore {
  const speech = documentsIn(database, speechSchema);
  return {
    // An insert conflicts with the request itself, or with another one in its slot.
    open: async (intent) =>
      (await speech.insert(keptOf(intent))) || (await speech.find(intent.speechId)) !== undefined,
    beat: (speechId, owner, leaseUntil) =>
      speech.set(speechId, { owner, status: "open" }, { dueAt: leaseUntil }),
    close(speechId, closer, closing, dueAt) {
      const who =
        "owner" in closer ? { owner: closer.owner } : { dueAt: { upTo: closer.leaseOverAt } };
      const { kind, audio } = { audio: undefined, ...closing };
      const values = { status: kind, dueAt, ...(audio ? { audio } : { idem: undefined }) };
      return speech.set(speechId, { status: "open", ...who }, values, { named: true });
    },
    async finish(speechId, expireAt) {
      const spoken = { status: "settling", audio: { there: true } } as const;
      if (await speech.set(speechId, spoken, { status: "closed", dueAt: expireAt })) return;
      await speech.remove(speechId, { status: ["settling", "releasing"] });
    },
    withdraw: (speechId, owner) => speech.remove(speechId, { owner, status: "open" }),
    forget: (speechId) => speech.remove(speechId, { status: "closed" }),
    async defer(speechId, dueAt) {
      await speech.set(speechId, { status: ["settling", "releasing", "closed"] }, { dueAt });
    },
    async bringForward(now, at) {
      const putOff = { of: [["open", "settling", "releasing"]], behind: [now + longestDueMs] };
      await speech.setSome("at_work", putOff, { dueAt: at });
    },
    async find(speechId) {
      const found = await speech.find(speechId);
      return found && recordOf(found);
    },
    async findBySlot({ keyId, key }) {
      const [found] = await speech.seek("idem", { of: [keyId, key], limit: 1 });
      return found && recordOf(found);
    },
    closedOf: async (keyIds, limit) =>
      (await speech.seek("of_key", { of: [keyIds, "closed"], limit })).map(recordOf),
    due: async (now, limit) => (await speech.seek("due", { upTo: now, limit })).map(recordOf),
  };
}

function keptOf(intent: SpeechIntent): KeptSpeech {
  const { leaseUntil, idempotency, requestId: _told, tries: _tried, ...rest } = intent;
  return { ...rest, status: "open", dueAt: leaseUntil, idem: idempotency };
}

function recordOf({ dueAt = 0, idem, audio, ...rest }: KeptSpeech): SpeechRecord {
  return {
    ...rest,
    ...(audio ? { audio: { ...audio, format: audio.format ?? "mp3" } } : {}),
    leaseUntil: rest.status === "open" ? dueAt : 0,
    ...(idem ? { idempotency: idem } : {}),
  };
}
