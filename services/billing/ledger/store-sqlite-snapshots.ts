// Reads whole wallets from SQLite for an audit, those included of which only entries or holds are left.

import { turn } from "#kit/base/in-turns.ts";
import type { SqliteDatabase } from "#kit/store/sqlite.ts";
import { auditPageSize } from "../base/limits.ts";
import type { WalletSnapshot } from "./store.ts";
import { entryOf, holdOf, keyOf, type WalletId, walletOf } from "./store-sqlite-rows.ts";
import type { Entry } from "./wallet.ts";

/**
 * The wallets (of one account, where given), then the rest of wallets that are gone, one at a time. Other work gets its turn in
 * between.
 */
export async function* readSnapshots(
  db: SqliteDatabase,
  accountId: string | undefined,
): AsyncIterable<WalletSnapshot> {
  const next =
    accountId === undefined
      ? () => db.get(nextOfAll, id)?.id
      : () => db.get(nextOfAccount, id, accountId)?.id;
  let id: WalletId = -1n;
  for (;;) {
    const found = next();
    if (typeof found !== "bigint") return;
    id = found;
    yield snapshot(db, found);
  }
}

const nextOfAccount = "SELECT min(id) AS id FROM ledger_wallet WHERE id > ? AND account_id = ?";
// A number that occurs in any table, so that rows whose wallet was removed are found too.
const nextOfAll = `SELECT min(id) AS id FROM (
  SELECT min(id) AS id FROM ledger_wallet WHERE id > ?1
  UNION ALL SELECT min(wallet) FROM ledger_entry WHERE wallet > ?1
  UNION ALL SELECT min(wallet) FROM ledger_hold WHERE wallet > ?1)`;

// Synchronous, so wallet, holds and keys are of one moment. Entries up to then never change.
function snapshot(db: SqliteDatabase, id: WalletId): WalletSnapshot {
  const row = db.get("SELECT * FROM ledger_wallet WHERE id = ?", id);
  const wallet = row && walletOf(row);
  const last = db.get("SELECT max(n) AS n FROM ledger_entry WHERE wallet = ?", id);
  const lastEntry = Number(last?.n ?? 0);
  return {
    ref: wallet ?? { accountId: "", unit: "usd_micros" },
    wallet,
    holds: db.all("SELECT * FROM ledger_hold WHERE wallet = ?", id).map(holdOf),
    keys: db.all("SELECT * FROM ledger_key WHERE wallet = ?", id).map(keyOf),
    lastEntry,
    entries: () => journal(db, id, lastEntry),
    async entry(number) {
      const sql = "SELECT * FROM ledger_entry WHERE wallet = ? AND n = ?";
      const row = db.get(sql, id, number);
      return row && entryOf(row);
    },
  };
}

async function* journal(
  db: SqliteDatabase,
  id: WalletId,
  lastEntry: number,
): AsyncIterable<readonly Entry[]> {
  const sql = "SELECT * FROM ledger_entry WHERE wallet = ? AND n > ? AND n <= ? ORDER BY n LIMIT ?";
  let after = Number.MIN_SAFE_INTEGER;
  for (;;) {
    const page = db.all(sql, id, after, lastEntry, auditPageSize).map(entryOf);
    if (page.length > 0) yield page;
    if (page.length < auditPageSize) return;
    after = page.at(-1)?.n ?? lastEntry;
    // Other requests come first.
    await turn();
  }
}
