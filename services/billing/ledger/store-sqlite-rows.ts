// Reads and writes single rows of the ledger's tables in SQLite, as wallets, holds and entries. `store-sqlite-schema.ts` declares the
// tables, `store-sqlite-wallets.ts` decides when a wallet is written, and `store-sqlite-pages.ts` reads lists.

import type { SqlRow, SqlRunner, SqlValue } from "#kit/store/sqlite.ts";
import type { Periods } from "../base/periods.ts";
import type { WalletHold } from "./store.ts";
import {
  type Entry,
  type EntryKind,
  type HoldKind,
  holdIdOf,
  type KeyCounter,
  type KeyTotals,
  type OpenHold,
  packedRef,
  type Unit,
  unpackedRef,
  type Wallet,
  type WalletRef,
} from "./wallet.ts";

/** A wallet's number in the other tables. */
export type WalletId = bigint;

/** Reads a wallet. Undefined where it has no row. */
export function readWallet(
  db: SqlRunner,
  { accountId, unit }: WalletRef,
): { id: WalletId; wallet: Wallet } | undefined {
  const row = db.get(
    "SELECT * FROM ledger_wallet WHERE account_id = ? AND unit = ?",
    accountId,
    unit,
  );
  return row && { id: row.id as WalletId, wallet: walletOf(row) };
}

/** Reads which wallet has a number. Undefined: none has it. */
export function readWalletRef(db: SqlRunner, id: WalletId): WalletRef | undefined {
  const row = db.get("SELECT account_id, unit FROM ledger_wallet WHERE id = ?", id);
  return row && { accountId: String(row.account_id), unit: row.unit as Unit };
}

/** Makes the row of a wallet that has none. */
export function insertWallet(db: SqlRunner, ref: WalletRef): WalletId {
  const sql = `INSERT INTO ledger_wallet (account_id, unit, granted, free, held, spent, month, month_spent,
    open_holds, n, at, hash) VALUES (?, ?, 0, 0, 0, 0, '', 0, 0, 0, 0, '') RETURNING id`;
  return db.get(sql, ref.accountId, ref.unit)?.id as WalletId;
}

/** Writes a wallet's new values. */
export function updateWallet(db: SqlRunner, id: WalletId, w: Wallet): void {
  db.run(
    `UPDATE ledger_wallet SET granted = ?, free = ?, held = ?, spent = ?, month = ?, month_spent = ?,
       last_month = ?, last_month_spent = ?, open_holds = ?, n = ?, at = ?, hash = ? WHERE id = ?`,
    w.granted,
    w.free,
    w.held,
    w.spent,
    w.month.period,
    w.month.spent,
    w.month.last.period,
    w.month.last.spent,
    w.openHolds,
    w.n,
    w.at,
    w.hash,
    id,
  );
}

/** Reads a key's counters. */
export function readKey(db: SqlRunner, id: WalletId, keyId: string): KeyCounter | undefined {
  const row = db.get("SELECT * FROM ledger_key WHERE wallet = ? AND key_id = ?", id, keyId);
  return row && keyOf(row);
}

/** Writes a key's counters, new or not. */
export function writeKey(db: SqlRunner, id: WalletId, k: KeyCounter): void {
  db.run(
    writeKeySql,
    id,
    k.keyId,
    k.month.period,
    k.month.spent,
    k.held,
    k.month.last.period,
    k.month.last.spent,
    ...periodValues(k.totals?.day),
    ...periodValues(k.totals?.week),
    k.totals?.ever ?? null,
  );
}

const keyColumns = [
  ...["month", "spent", "held", "last_month", "last_month_spent"],
  ...["day", "day_spent", "last_day", "last_day_spent"],
  ...["week", "week_spent", "last_week", "last_week_spent", "ever_spent"],
];
const writeKeySql = `INSERT INTO ledger_key (wallet, key_id, ${keyColumns.join(", ")})
  VALUES (?, ?, ${keyColumns.map(() => "?").join(", ")})
  ON CONFLICT (wallet, key_id) DO UPDATE SET
    ${keyColumns.map((name) => `${name} = excluded.${name}`).join(", ")}`;

function periodValues(periods: Periods | undefined): SqlValue[] {
  if (!periods) return [null, null, null, null];
  return [periods.period, periods.spent, periods.last.period, periods.last.spent];
}

/** Reads an open hold. */
export function readHold(db: SqlRunner, id: WalletId, holdId: string): OpenHold | undefined {
  const row = db.get("SELECT * FROM ledger_hold WHERE wallet = ? AND hold_id = ?", id, holdId);
  return row && holdOf(row);
}

/** Writes an open hold that has no row. */
export function insertHold(db: SqlRunner, id: WalletId, h: OpenHold): void {
  db.run(
    "INSERT INTO ledger_hold VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    id,
    h.holdId,
    h.amount,
    h.holdKind,
    h.keyId,
    h.ref,
    h.openedAt,
    h.checkAt,
    h.extensions,
  );
}

/** Writes a hold's new check time. */
export function updateHold(db: SqlRunner, id: WalletId, h: OpenHold): void {
  db.run(
    "UPDATE ledger_hold SET check_at = ?, extensions = ? WHERE wallet = ? AND hold_id = ?",
    h.checkAt,
    h.extensions,
    id,
    h.holdId,
  );
}

/** Deletes the row of a hold that ended. */
export function deleteHold(db: SqlRunner, id: WalletId, holdId: string): void {
  db.run("DELETE FROM ledger_hold WHERE wallet = ? AND hold_id = ?", id, holdId);
}

/** Reads the entry of an operation. */
export function readEntry(db: SqlRunner, id: WalletId, operationId: string): Entry | undefined {
  const row = db.get(
    "SELECT * FROM ledger_entry WHERE wallet = ? AND operation_id = ?",
    id,
    operationId,
  );
  return row && entryOf(row);
}

/** Reads the entries after a number, in their order. Undefined where there are more than `most`. */
export function readEntriesAfter(
  db: SqlRunner,
  id: WalletId,
  number: number,
  most: number,
): Entry[] | undefined {
  const sql = "SELECT * FROM ledger_entry WHERE wallet = ? AND n > ? ORDER BY n LIMIT ?";
  const rows = db.all(sql, id, number, most + 1);
  return rows.length > most ? undefined : rows.map(entryOf);
}

/** An entry's columns, without that of its wallet. */
export const entryColumns = [
  ...["n", "operation_id", "kind", "hold_kind", "key_id", "amount", "free_delta"],
  ...["held_delta", "spent_delta", "ref", "at", "check_at", "hash"],
] as const;

/** An entry's values, as {@link entryColumns} has them. */
export function entryValues(e: Entry): SqlValue[] {
  return [
    e.n,
    e.operationId,
    e.kind,
    e.holdKind,
    e.keyId,
    e.amount,
    e.freeDelta,
    e.heldDelta,
    e.spentDelta,
    packedRef(e),
    e.at,
    e.checkAt,
    e.hash,
  ];
}

export function walletOf(row: SqlRow): Wallet {
  return {
    accountId: String(row.account_id),
    unit: row.unit as Unit,
    granted: row.granted as bigint,
    free: row.free as bigint,
    held: row.held as bigint,
    spent: row.spent as bigint,
    month: monthOf(row, row.month_spent),
    openHolds: Number(row.open_holds),
    n: Number(row.n),
    at: Number(row.at),
    hash: String(row.hash),
  };
}

export function keyOf(row: SqlRow): KeyCounter {
  return {
    keyId: String(row.key_id),
    month: monthOf(row, row.spent),
    held: row.held as bigint,
    totals: totalsOf(row),
  };
}

function totalsOf(row: SqlRow): KeyTotals | undefined {
  if (row.ever_spent === null) return undefined;
  return {
    day: {
      period: String(row.day),
      spent: row.day_spent as bigint,
      last: { period: String(row.last_day), spent: row.last_day_spent as bigint },
    },
    week: {
      period: String(row.week),
      spent: row.week_spent as bigint,
      last: { period: String(row.last_week), spent: row.last_week_spent as bigint },
    },
    ever: row.ever_spent as bigint,
  };
}

function monthOf(row: SqlRow, spent: SqlRow[string] | undefined): Periods {
  return {
    period: String(row.month),
    spent: spent as bigint,
    last: { period: String(row.last_month), spent: row.last_month_spent as bigint },
  };
}

export function holdOf(row: SqlRow): OpenHold {
  return {
    holdId: String(row.hold_id),
    amount: row.amount as bigint,
    holdKind: row.hold_kind as HoldKind,
    keyId: String(row.key_id),
    ref: String(row.ref),
    openedAt: Number(row.opened_at),
    checkAt: Number(row.check_at),
    extensions: Number(row.extensions),
  };
}

/** A hold whose row was joined with its wallet's. */
export function walletHoldOf(row: SqlRow): WalletHold {
  return {
    ...holdOf(row),
    wallet: { accountId: String(row.account_id), unit: row.unit as Unit },
  };
}

export function entryOf(row: SqlRow): Entry {
  const operationId = String(row.operation_id);
  return {
    n: Number(row.n),
    operationId,
    kind: row.kind as EntryKind,
    holdId: holdIdOf(operationId),
    holdKind: row.hold_kind as HoldKind | "",
    keyId: String(row.key_id),
    amount: row.amount as bigint,
    freeDelta: row.free_delta as bigint,
    heldDelta: row.held_delta as bigint,
    spentDelta: row.spent_delta as bigint,
    ...unpackedRef(String(row.ref)),
    at: Number(row.at),
    checkAt: Number(row.check_at),
    hash: String(row.hash),
  };
}
