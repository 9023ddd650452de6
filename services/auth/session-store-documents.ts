// Keeps sessions of the console as documents, in SQLite or MongoDB. The first release had a table of its own, which the SQL turns
// into documents.

import { documentsIn, openDocuments } from "#kit/documents/open.ts";
import type { Component, DocumentsSchema } from "#kit/documents/schema.ts";
import type { Database } from "#kit/store/database.ts";
import { hashText } from "./key.ts";
import type { Session } from "./session.ts";
import { holderOf, operatorHolder, type SessionStore } from "./session-store.ts";

/** A session in its stored form. */
interface KeptSession extends Omit<Session, "sha256" | "secretSha256"> {
  /** SHA-256 of the session's id, hexadecimal. */
  sha256: string;
  holder: string;
  /** SHA-256 of the secret, hexadecimal. */
  secret: string;
}

const indexes = {
  holder: { key: { holder: 1, createdAtMs: -1 } },
  end: { key: { endsAtMs: 1 } },
} as const;

const sessionSchema: DocumentsSchema<KeptSession, keyof typeof indexes> = {
  name: "auth_session",
  id: "sha256",
  columns: {
    ...{ holder: "text", createdAtMs: "integer", seenAtMs: "integer", endsAtMs: "integer" },
    confirmedAtMs: "integer",
  },
  indexes,
  compare: { fields: ["seenAtMs"] },
};

const tables = [
  `CREATE TABLE auth_session (
     sha256 BLOB PRIMARY KEY,
     holder TEXT NOT NULL,
     key_id TEXT,
     secret_sha256 BLOB NOT NULL,
     identity TEXT,
     created_at_ms INTEGER NOT NULL,
     seen_at_ms INTEGER NOT NULL,
     ends_at_ms INTEGER NOT NULL
   ) STRICT;
   CREATE INDEX auth_session_by_holder ON auth_session (holder, created_at_ms);
   CREATE INDEX auth_session_by_end ON auth_session (ends_at_ms);`,
  // Rows become documents.
  `ALTER TABLE auth_session RENAME TO auth_session_rows;
   CREATE TABLE auth_session (
     sha256 TEXT PRIMARY KEY,
     holder TEXT NOT NULL,
     created_at_ms INTEGER NOT NULL,
     seen_at_ms INTEGER NOT NULL,
     ends_at_ms INTEGER NOT NULL,
     doc TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;
   INSERT INTO auth_session SELECT lower(hex(sha256)), holder, created_at_ms, seen_at_ms, ends_at_ms,
     json_patch('{}', json_object('keyId', key_id, 'secret', lower(hex(secret_sha256)), 'identity', json(identity)))
     FROM auth_session_rows;
   DROP TABLE auth_session_rows;`,
  "ALTER TABLE auth_session ADD COLUMN confirmed_at_ms INTEGER;",
];

/** The documents of sessions, and their tables in SQLite. */
export const sessionComponent: Component = { name: "session", kinds: [sessionSchema], tables };

/** The sessions in a process's database. */
export function createSessionStore(database: Database): SessionStore {
  const sessions = documentsIn(database, sessionSchema);
  return {
    open: () => openDocuments(database, sessionComponent),
    async create(session, most) {
      const { sha256, secretSha256, ...rest } = session;
      const holder = holderOf(session);
      // Ids are random. So a session with this id was written by an attempt of this call whose answer was lost.
      await sessions.insert({
        ...{ sha256: hashText(sha256), holder, secret: hashText(secretSha256) },
        ...rest,
      });
      await Promise.all([
        sessions.removeSome("end", { upTo: session.createdAtMs }),
        sessions.removeSome("holder", { of: [holder], newestFirst: true, skip: most }),
      ]);
    },
    async find(sha256) {
      const found = await sessions.find(hashText(sha256));
      return found && sessionOf(found);
    },
    async touch(sha256, seenAtMs) {
      await sessions.set(hashText(sha256), { seenAtMs: { absentOrBelow: seenAtMs } }, { seenAtMs });
    },
    async confirm(sha256, confirmedAtMs) {
      await sessions.set(hashText(sha256), {}, { confirmedAtMs });
    },
    end: (sha256) => sessions.remove(hashText(sha256)),
    async endOf(name) {
      await sessions.removeSome("holder", { of: [operatorHolder(name)] });
    },
  };
}

function sessionOf({ sha256, holder: _holder, secret, ...rest }: KeptSession): Session {
  return {
    ...{ sha256: Buffer.from(sha256, "hex"), secretSha256: Buffer.from(secret, "hex") },
    ...rest,
  };
}
