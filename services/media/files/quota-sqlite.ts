import type { SqliteDatabase, SqlRunner } from "#kit/store/sqlite.ts";
import { type QuotaCharge, type QuotaStore, storedLimitOf } from "./quota.ts";

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

/** The sum to which a charge of a state counts. */
const sums = { reserved: "reserved_bytes", used: "used_bytes", kept: "kept_bytes" } as const;
type Counted = keyof typeof sums;

/** The quota in SQLite. A transition is one transaction over wallet and charge. */
export function createSqliteQuota(db: SqliteDatabase): QuotaStore {
  db.migrate("media_quota", schema);
  return {
    reserve: (charge, bytes, limitBytes) =>
      db.write((tx) => reserve(tx, charge, bytes, limitBytes)),
    commit: (charge) =>
      db.write((tx) => {
        const known = find(tx, charge);
        if (known?.state !== "reserved") return known?.state === "used";
        move(tx, charge, known.bytes, "reserved", "used");
        return true;
      }),
    keep: (charge, now) =>
      db.write((tx) => {
        const known = find(tx, charge);
        if (!known) return release(tx, charge, now);
        const { state, bytes } = known;
        if (state === "reserved" || state === "used") move(tx, charge, bytes, state, "kept");
      }),
    release: (charge, now) => db.write((tx) => release(tx, charge, now)),
    async usage(accountId) {
      const row = db.get("SELECT * FROM media_quota WHERE account_id = ?", accountId);
      return {
        usedBytes: Number(row?.used_bytes ?? 0),
        reservedBytes: Number(row?.reserved_bytes ?? 0),
        keptBytes: Number(row?.kept_bytes ?? 0),
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
  if (known) {
    return known.state === "released" || known.state === "kept" ? "released" : "reserved";
  }
  const { accountId, chargeId } = charge;
  tx.run("INSERT INTO media_quota VALUES (?, 0, 0, 0) ON CONFLICT DO NOTHING", accountId);
  const fits = tx.run(
    `UPDATE media_quota SET reserved_bytes = reserved_bytes + ?1
     WHERE account_id = ?2 AND used_bytes + reserved_bytes + ?1 <= ?3
       AND used_bytes + reserved_bytes + kept_bytes + ?1 <= ?4`,
    bytes,
    accountId,
    limitBytes,
    storedLimitOf(limitBytes),
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
  const column = sums[known.state];
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

/** Moves a charge's bytes from their present sum to another. */
function move(
  tx: SqlRunner,
  { accountId, chargeId }: QuotaCharge,
  bytes: bigint,
  from: Counted,
  to: Counted,
): void {
  tx.run("UPDATE media_quota_charge SET state = ? WHERE charge_id = ?", to, chargeId);
  tx.run(
    `UPDATE media_quota SET ${sums[to]} = ${sums[to]} + ?1, ${sums[from]} = ${sums[from]} - ?1
     WHERE account_id = ?2`,
    bytes,
    accountId,
  );
}

function find(tx: SqlRunner, { accountId, chargeId }: QuotaCharge) {
  const row = tx.get(
    "SELECT state, bytes FROM media_quota_charge WHERE charge_id = ? AND account_id = ?",
    chargeId,
    accountId,
  );
  return row && { state: row.state as Counted | "released", bytes: row.bytes as bigint };
}
