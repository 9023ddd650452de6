// Reads lists from the ledger in SQLite: due holds, open holds, entries. It changes nothing.

import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { SqlRow, SqlRunner } from "#kit/store/sqlite.ts";
import type { DueQuery, EntryQuery, HoldQuery, Page, WalletHold } from "./store.ts";
import { entryOf, walletHoldOf } from "./store-sqlite-rows.ts";
import { type Entry, operationIds, type WalletRef } from "./wallet.ts";

/** Holds with their wallets. */
const holdsOfWallets = `SELECT h.*, w.account_id, w.unit FROM ledger_hold h
  JOIN ledger_wallet w ON w.id = h.wallet`;

/** A page of due holds, by the index on their check time. */
export function readDueHolds(db: SqlRunner, { now, after, limit }: DueQuery): Page<WalletHold> {
  const rows = db.all(
    `${holdsOfWallets} WHERE h.check_at <= ? AND (h.check_at, h.wallet, h.hold_id) > (?, ?, ?)
     ORDER BY h.check_at, h.wallet, h.hold_id LIMIT ?`,
    now,
    ...parseCursor(after),
    limit + 1,
  );
  return pageOf(rows, limit, "check_at");
}

/**
 * A page of open holds by age, sorted without an index. Open holds are few and the operator rarely asks. An index would cost every
 * request.
 */
export function readHolds(db: SqlRunner, query: HoldQuery): Page<WalletHold> {
  const { accountId, keyId, after, limit } = query;
  const ofAccount = "h.wallet IN (SELECT id FROM ledger_wallet WHERE account_id = ?) AND";
  const rows = db.all(
    `${holdsOfWallets} WHERE ${accountId === undefined ? "" : ofAccount}
       ${keyId === undefined ? "" : "h.key_id = ? AND"} (h.opened_at, h.wallet, h.hold_id) > (?, ?, ?)
     ORDER BY h.opened_at, h.wallet, h.hold_id LIMIT ?`,
    ...[accountId, keyId].filter((value) => value !== undefined),
    ...parseCursor(after),
    limit + 1,
  );
  return pageOf(rows, limit, "opened_at");
}

/** When the oldest open hold was opened. It has no index, for the same reasons. */
export function readOldestHold(db: SqlRunner): number | undefined {
  const openedAt = db.get("SELECT min(opened_at) AS opened_at FROM ledger_hold")?.opened_at;
  return openedAt === null || openedAt === undefined ? undefined : Number(openedAt);
}

/** Entries of a wallet, newest first. */
export function readEntries(
  db: SqlRunner,
  { accountId, unit }: WalletRef,
  { holdId, below, limit }: EntryQuery,
): Entry[] {
  const wallet = "wallet = (SELECT id FROM ledger_wallet WHERE account_id = ? AND unit = ?)";
  const before = below ?? Number.MAX_SAFE_INTEGER;
  if (holdId === undefined) {
    const sql = `SELECT * FROM ledger_entry WHERE ${wallet} AND n < ? ORDER BY n DESC LIMIT ?`;
    return db.all(sql, accountId, unit, before, limit).map(entryOf);
  }
  // A hold's operation ids, except those of its charge and its refund, share a beginning. So the index on them finds its entries.
  const sql = `SELECT * FROM ledger_entry WHERE ${wallet}
    AND (operation_id > ? AND operation_id < ? OR operation_id IN (?, ?)) AND n < ? ORDER BY n DESC LIMIT ?`;
  const ids = [
    `${holdId}:`,
    `${holdId};`,
    operationIds.charge(holdId),
    operationIds.refund(holdId),
  ];
  const rows = db.all(sql, accountId, unit, ...ids, before, limit);
  return rows.map(entryOf);
}

/** A page of rows. One row more than requested was read, which shows whether there is another page. */
function pageOf(rows: SqlRow[], limit: number, time: string): Page<WalletHold> {
  const page = rows.slice(0, limit);
  const last = rows.length > limit ? page.at(-1) : undefined;
  return {
    items: page.map(walletHoldOf),
    next: last && `${last[time]}.${last.wallet}.${last.hold_id}`,
  };
}

/** Time, wallet and hold id of the last row of a page. Values before all rows for the first page. */
function parseCursor(cursor: string | undefined): [bigint, bigint, string] {
  if (cursor === undefined) return [-1n, 0n, ""];
  const [, time, wallet, holdId] = /^(\d{1,15})\.(\d{1,18})\.([a-z0-9_]{8,40})$/.exec(cursor) ?? [];
  if (time === undefined || wallet === undefined || holdId === undefined) {
    refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field: "page_token" } });
  }
  return [BigInt(time), BigInt(wallet), holdId];
}
