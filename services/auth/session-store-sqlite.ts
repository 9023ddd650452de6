import type { SqliteDatabase, SqlRow } from "#kit/store/sqlite.ts";
import type { Session } from "./session.ts";
import { holderOf, type SessionStore } from "./session-store.ts";
import { bytesOf } from "./store-sqlite-rows.ts";

const schema: readonly string[] = [
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
];

/** Sessions in SQLite. */
export function createSqliteSessionStore(db: SqliteDatabase): SessionStore {
  return {
    open: async () => db.migrate("session", schema),
    create: (session, most) =>
      db.write((tx) => {
        const holder = holderOf(session);
        tx.run("DELETE FROM auth_session WHERE ends_at_ms <= ?", session.createdAtMs);
        tx.run(
          `INSERT INTO auth_session (sha256, holder, key_id, secret_sha256, identity, created_at_ms,
             seen_at_ms, ends_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
          session.sha256,
          holder,
          session.keyId ?? null,
          session.secretSha256,
          session.identity ? JSON.stringify(session.identity) : null,
          session.createdAtMs,
          session.seenAtMs,
          session.endsAtMs,
        );
        tx.run(
          `DELETE FROM auth_session WHERE sha256 IN (SELECT sha256 FROM auth_session
             WHERE holder = ? ORDER BY created_at_ms DESC, rowid DESC LIMIT -1 OFFSET ?)`,
          holder,
          most,
        );
      }),
    async find(sha256) {
      const row = db.get("SELECT * FROM auth_session WHERE sha256 = ?", sha256);
      return row && sessionOf(row);
    },
    touch: (sha256, seenAtMs) =>
      db.write((tx) => {
        tx.run(
          "UPDATE auth_session SET seen_at_ms = max(seen_at_ms, ?) WHERE sha256 = ?",
          seenAtMs,
          sha256,
        );
      }),
    end: (sha256) =>
      db.write((tx) => {
        tx.run("DELETE FROM auth_session WHERE sha256 = ?", sha256);
      }),
  };
}

function sessionOf(row: SqlRow): Session {
  return {
    sha256: bytesOf(row.sha256),
    ...(row.key_id === null ? {} : { keyId: String(row.key_id) }),
    secretSha256: bytesOf(row.secret_sha256),
    ...(row.identity === null ? {} : { identity: JSON.parse(String(row.identity)) }),
    createdAtMs: Number(row.created_at_ms),
    seenAtMs: Number(row.seen_at_ms),
    endsAtMs: Number(row.ends_at_ms),
  };
}
