// The store of usage in SQLite: cursors, lines, key totals. `store-sqlite-rollups.ts` keeps its rollups.

import type { SqliteDatabase, SqlRow, SqlRunner, SqlValue } from "#kit/store/sqlite.ts";
import { looksBehind } from "../base/limits.ts";
import { type Unit, unpackedRef, type WalletRef } from "../ledger/wallet.ts";
import type { CountedEntries } from "./count-entries.ts";
import {
  findLine,
  findLines,
  type LineIndex,
  type LineStretch,
  searchLines,
} from "./line-search.ts";
import {
  addToRows,
  readGroups,
  readRows,
  readServed,
  servedRollup,
  usageRollup,
} from "./store-sqlite-rollups.ts";
import { usageSchema } from "./store-sqlite-usage-schema.ts";
import { byKey, type Line, type LineKind, type UsageCursor, uncounted } from "./usage.ts";
import { type KeyTotal, type UsageStore, usualKind, usualStatus } from "./usage-store.ts";

/**
 * Usage in the process's SQLite file. It reads the ledger's tables there, and writes its own alone. Sums and the number of the last
 * counted entry are written in one transaction.
 */
export function createSqliteUsage(db: SqliteDatabase): UsageStore {
  const read = async <T>(work: () => T): Promise<T> => work();
  return {
    open: () => read(() => db.migrate("ledger_usage", usageSchema)),
    cursor: (wallet) => read(() => readCursor(db, wallet)),
    count: (wallet, before, counted) => db.write((tx) => write(tx, wallet, before, counted)),
    behind: (after) => read(() => readBehind(db, after)),
    keyTotals: (wallet, keyIds) => read(() => readKeyTotals(db, wallet, keyIds)),
    groups: (query) => read(() => readGroups(db, usageRollup, { ...query, byUpstream: false })),
    served: (query) => readServed(db, query),
    lines: (query) => searchLines(query, (stretch) => readLines(db, stretch)),
    find: (accountId, keyId, id) =>
      findLine({ accountId, keyId, id }, (stretch) => readLines(db, stretch)),
    findAll: (id) => findLines(id, (stretch) => readLines(db, stretch)),
    rows: (wallet) => readRows(db, usageRollup, wallet),
    servedRows: (wallet) => readRows(db, servedRollup, wallet),
  };
}

function walletId(db: SqlRunner, { accountId, unit }: WalletRef): SqlValue | undefined {
  const sql = "SELECT id FROM ledger_wallet WHERE account_id = ? AND unit = ?";
  return db.get(sql, accountId, unit)?.id;
}

function readCursor(db: SqlRunner, wallet: WalletRef): UsageCursor {
  const id = walletId(db, wallet);
  if (id === undefined) return uncounted;
  const row = db.get("SELECT n, balance, served_n FROM ledger_usage_cursor WHERE wallet = ?", id);
  if (!row) return uncounted;
  const n = Number(row.n);
  // Rollup and totals are written together, and only ever by one release.
  return { n, balance: row.balance as bigint, keysN: n, servedN: Number(row.served_n) };
}

/** Does nothing where another call has counted meanwhile. The next count goes on from its end. */
function write(
  tx: SqlRunner,
  wallet: WalletRef,
  before: UsageCursor,
  { cursor, lines, steps, keySteps, servedSteps }: CountedEntries,
): void {
  const id = walletId(tx, wallet);
  if (id === undefined) return;
  const { n, servedN } = readCursor(tx, wallet);
  if (n !== before.n || servedN !== before.servedN) return;
  const { accountId, unit } = wallet;
  for (const line of lines) {
    tx.run(
      "INSERT INTO ledger_line VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      accountId,
      line.at,
      unit,
      line.n,
      id,
      line.kind,
      line.keyId,
      line.model,
      line.status,
      line.amount,
      line.balance,
      line.publicId,
      line.requestId,
    );
  }
  addToRows(tx, usageRollup, wallet, steps);
  addToRows(tx, servedRollup, wallet, servedSteps);
  for (const [keyId, { n, spent }] of byKey(keySteps)) {
    tx.run(addToTotal, accountId, unit, keyId, n, spent);
  }
  tx.run(
    `INSERT INTO ledger_usage_cursor VALUES (?, ?, ?, ?)
     ON CONFLICT (wallet) DO UPDATE SET n = excluded.n, balance = excluded.balance,
       served_n = excluded.served_n`,
    id,
    cursor.n,
    cursor.balance,
    cursor.servedN,
  );
}

const addToTotal = `INSERT INTO ledger_key_total VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (account_id, unit, key_id) DO UPDATE SET n = excluded.n, spent = spent + excluded.spent`;

function readKeyTotals(
  db: SqlRunner,
  { accountId, unit }: WalletRef,
  keyIds: readonly string[] | undefined,
): KeyTotal[] {
  const only = keyIds ? "AND key_id IN (SELECT value FROM json_each(?))" : "";
  const sql = `SELECT key_id, n, spent FROM ledger_key_total WHERE account_id = ? AND unit = ? ${only}`;
  return db.all(sql, accountId, unit, ...(keyIds ? [JSON.stringify(keyIds)] : [])).map((row) => ({
    keyId: String(row.key_id),
    n: Number(row.n),
    spent: row.spent as bigint,
  }));
}

function readBehind(
  db: SqlRunner,
  after: string | undefined,
): { wallets: WalletRef[]; next: string | undefined } {
  const rows = db.all(
    `SELECT w.id, w.account_id, w.unit, w.n > coalesce(min(c.n, c.served_n), 0) AS is_behind FROM ledger_wallet w
     LEFT JOIN ledger_usage_cursor c ON c.wallet = w.id WHERE w.id > ? ORDER BY w.id LIMIT ?`,
    BigInt(after ?? 0),
    looksBehind,
  );
  return {
    wallets: rows
      .filter((row) => row.is_behind === 1n)
      .map((row) => ({ accountId: String(row.account_id), unit: row.unit as Unit })),
    next: rows.length < looksBehind ? undefined : String(rows.at(-1)?.id),
  };
}

/** The condition of each index, in the form that a query must have to use it. */
const indexConditions = {
  key: "AND l.key_id = ?",
  model: "AND l.model = ?",
  status: `AND l.status = ? AND l.status <> '${usualStatus}' AND l.status <> ''`,
  kind: `AND l.kind = ? AND l.kind <> '${usualKind}'`,
  public: "AND l.public_id = ? AND l.public_id <> ''",
  request: "AND l.request_id = ? AND l.request_id <> ''",
  all: "",
} as const satisfies Record<LineIndex, string>;

/**
 * Lines by an index, newest or oldest first. The index is named. By itself SQLite goes through all lines of the account, because they
 * have the requested order. A named index that a query cannot use is an error.
 */
function selectLines({ accountId, index, above, below, isRising }: LineStretch): string {
  const isShared = accountId === undefined;
  const isById = index === "public" || index === "request";
  const name = isShared && !isById ? `shared_${index}` : index;
  const by = name === "all" ? "" : `INDEXED BY ledger_line_${name}`;
  const places = ["l.at", "l.unit", "l.n", ...(isShared ? ["l.account_id"] : [])];
  const marks = places.map(() => "?").join(", ");
  const order = places.map((column) => `${column} ${isRising ? "ASC" : "DESC"}`).join(", ");
  return `SELECT l.*, e.ref FROM ledger_line l ${by}
    LEFT JOIN ledger_entry e ON e.wallet = l.wallet AND e.n = l.n
    WHERE ${isShared ? "TRUE" : "l.account_id = ?"} ${indexConditions[index]}
      ${above ? `AND (${places.join(", ")}) > (${marks})` : ""}
      ${below ? `AND (${places.join(", ")}) < (${marks})` : ""}
    ${isShared && isById ? "" : `ORDER BY ${order}`} LIMIT ?`;
}

async function readLines(db: SqlRunner, stretch: LineStretch): Promise<Line[]> {
  const { accountId, value, above, below, limit } = stretch;
  const isShared = accountId === undefined;
  const values = [
    ...(isShared ? [] : [accountId]),
    ...(value === undefined ? [] : [value]),
    ...[above, below].flatMap((place) =>
      place ? [place.at, place.unit, place.n, ...(isShared ? [place.accountId ?? ""] : [])] : [],
    ),
    limit,
  ];
  return db.all(selectLines(stretch), ...values).map(lineOf);
}

function lineOf(row: SqlRow): Line {
  return {
    wallet: { accountId: String(row.account_id), unit: row.unit as Unit },
    n: Number(row.n),
    at: Number(row.at),
    kind: row.kind as LineKind,
    keyId: String(row.key_id),
    model: String(row.model),
    status: String(row.status),
    amount: row.amount as bigint,
    balance: row.balance as bigint,
    publicId: String(row.public_id),
    requestId: String(row.request_id),
    record: unpackedRef(String(row.ref ?? "")).record,
  };
}
