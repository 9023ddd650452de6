// Counts quotas in SQLite. `quota-rules.ts` decides each change.

import type { SqliteDatabase, SqlRow, SqlRunner } from "#kit/store/sqlite.ts";
import type { QuotaStore, QuotaUsage } from "./quota.ts";
import {
  type ChargeEntry,
  draftOf,
  type QuotaOperation,
  type QuotaOutcome,
  transitionsBy,
} from "./quota-rules.ts";

/** Tables, step by step. A released step is never changed. */
const schema: readonly string[] = [
  `CREATE TABLE media_quota (
    account_id TEXT PRIMARY KEY,
    used_bytes INTEGER NOT NULL CHECK (used_bytes >= 0),
    reserved_bytes INTEGER NOT NULL CHECK (reserved_bytes >= 0)
  ) STRICT;
  CREATE TABLE media_quota_charge (
    charge_id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL,
    state TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    released_at INTEGER
  ) STRICT;
  CREATE INDEX media_quota_released ON media_quota_charge (released_at) WHERE released_at IS NOT NULL;`,
  "ALTER TABLE media_quota ADD COLUMN kept_bytes INTEGER NOT NULL DEFAULT 0 CHECK (kept_bytes >= 0);",
];

/** The quota in SQLite. A transition is one transaction over wallet and charge. */
export function createSqliteQuota(db: SqliteDatabase): QuotaStore {
  db.migrate("media_quota", schema);
  return {
    ...transitionsBy((accountId, operation) =>
      db.write((tx) => carryOut(tx, accountId, operation)),
    ),
    usage: async (accountId) =>
      usageOf(db.get("SELECT * FROM media_quota WHERE account_id = ?", accountId)),
    forget: (before, limit) => db.write((tx) => tx.run(forgetSql, before, limit)),
  };
}

const walletSql = `INSERT INTO media_quota (used_bytes, reserved_bytes, kept_bytes, account_id) VALUES (?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET used_bytes = excluded.used_bytes, reserved_bytes = excluded.reserved_bytes,
    kept_bytes = excluded.kept_bytes`;
/** A wallet and a charge, each of which may be missing. */
const bothSql = `SELECT used_bytes, reserved_bytes, kept_bytes, state, bytes
  FROM (SELECT ?1 AS account_id, ?2 AS charge_id) asked
  LEFT JOIN media_quota w ON w.account_id = asked.account_id
  LEFT JOIN media_quota_charge c ON c.charge_id = asked.charge_id AND c.account_id = asked.account_id`;
const insertSql = `INSERT INTO media_quota_charge (state, bytes, released_at, charge_id, account_id)
  VALUES (?, ?, ?, ?, ?)`;
const changeSql = `UPDATE media_quota_charge SET state = ?, bytes = ?, released_at = ?
  WHERE charge_id = ? AND account_id = ?`;
const forgetSql = `DELETE FROM media_quota_charge WHERE charge_id IN
  (SELECT charge_id FROM media_quota_charge WHERE released_at < ? LIMIT ?)`;

function carryOut(tx: SqlRunner, accountId: string, operation: QuotaOperation): QuotaOutcome {
  const { chargeId } = operation;
  const row = tx.get(bothSql, accountId, chargeId);
  const known = new Map<string, ChargeEntry>();
  if (row?.state) {
    const state = row.state as ChargeEntry["state"];
    known.set(chargeId, { n: 0, chargeId, state, bytes: Number(row.bytes) });
  }
  const { sums, entries, outcomes } = draftOf({ n: 0, ...usageOf(row) }, known, [operation]);
  for (const { state, bytes, releasedAt = null } of entries) {
    if (bytes > 0) {
      tx.run(walletSql, sums.usedBytes, sums.reservedBytes, sums.keptBytes, accountId);
    }
    tx.run(known.size > 0 ? changeSql : insertSql, state, bytes, releasedAt, chargeId, accountId);
  }
  return outcomes[0] ?? "none";
}

function usageOf(row: SqlRow | undefined): QuotaUsage {
  return {
    usedBytes: Number(row?.used_bytes ?? 0),
    reservedBytes: Number(row?.reserved_bytes ?? 0),
    keptBytes: Number(row?.kept_bytes ?? 0),
  };
}
