import type { SqliteDatabase, SqlRunner } from "#kit/sqlite.ts";
import type { QuotaCharge, QuotaStore } from "./quota.ts";

/** Tables, step by step; a step that was shipped is never changed. */
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
];

/** The quota in SQLite: a transition is one transaction over wallet and charge. */
export function createSqliteQuota(db: SqliteDatabase): QuotaStore {
  db.migrate("media_quota", schema);
  return {
    reserve: (charge, bytes, limitBytes) =>
      db.write((tx) => reserve(tx, charge, bytes, limitBytes)),
    commit: (charge) =>
      db.write((tx) => {
        const known = find(tx, charge);
        if (known?.state !== "reserved") return known?.state === "used";
        tx.run(`UPDATE media_quota_charge SET state = 'used' WHERE charge_id = ?`, charge.chargeId);
        tx.run(
          `UPDATE media_quota SET used_bytes = used_bytes + ?1, reserved_bytes = reserved_bytes - ?1
           WHERE account_id = ?2`,
          known.bytes,
          charge.accountId,
        );
        return true;
      }),
    release: (charge, now) => db.write((tx) => release(tx, charge, now)),
    async usage(accountId) {
      const row = db.get("SELECT * FROM media_quota WHERE account_id = ?", accountId);
      return {
        usedBytes: Number(row?.used_bytes ?? 0),
        reservedBytes: Number(row?.reserved_bytes ?? 0),
      };
    },
    forget: (before, limit) =>
      db.write((tx) =>
        tx.run(
          `DELETE FROM media_quota_charge WHERE charge_id IN
           (SELECT charge_id FROM media_quota_charge WHERE released_at < ? LIMIT ?)`,
          before,
          limit,
        ),
      ),
  };
}

function reserve(tx: SqlRunner, charge: QuotaCharge, bytes: number, limitBytes: number) {
  const known = find(tx, charge);
  if (known) return known.state === "released" ? "released" : "reserved";
  const { accountId, chargeId } = charge;
  tx.run("INSERT INTO media_quota VALUES (?, 0, 0) ON CONFLICT DO NOTHING", accountId);
  const fits = tx.run(
    `UPDATE media_quota SET reserved_bytes = reserved_bytes + ?1
     WHERE account_id = ?2 AND used_bytes + reserved_bytes + ?1 <= ?3`,
    bytes,
    accountId,
    limitBytes,
  );
  if (fits === 0) return "full";
  tx.run(
    "INSERT INTO media_quota_charge VALUES (?, ?, 'reserved', ?, NULL)",
    chargeId,
    accountId,
    bytes,
  );
  return "reserved";
}

function release(tx: SqlRunner, charge: QuotaCharge, now: number): void {
  const { accountId, chargeId } = charge;
  const known = find(tx, charge);
  if (known?.state === "released") return;
  if (!known) {
    tx.run(
      "INSERT INTO media_quota_charge VALUES (?, ?, 'released', 0, ?)",
      chargeId,
      accountId,
      now,
    );
    return;
  }
  const column = known.state === "used" ? "used_bytes" : "reserved_bytes";
  tx.run(
    `UPDATE media_quota SET ${column} = ${column} - ? WHERE account_id = ?`,
    known.bytes,
    accountId,
  );
  tx.run(
    `UPDATE media_quota_charge SET state = 'released', released_at = ? WHERE charge_id = ?`,
    now,
    chargeId,
  );
}

function find(tx: SqlRunner, { accountId, chargeId }: QuotaCharge) {
  const row = tx.get(
    "SELECT state, bytes FROM media_quota_charge WHERE charge_id = ? AND account_id = ?",
    chargeId,
    accountId,
  );
  return row && { state: String(row.state), bytes: row.bytes as bigint };
}
