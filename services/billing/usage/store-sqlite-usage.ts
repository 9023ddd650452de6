import { turn } from "#kit/base/in-turns.ts";
import type { SqliteDatabase, SqlRow, SqlRunner, SqlValue } from "#kit/store/sqlite.ts";
import { looksBehind, usageRowsPage } from "../base/limits.ts";
import { type Unit, unpackedRef, type WalletRef } from "../ledger/wallet.ts";
import { findLine, type LineIndex, type LineStretch, searchLines } from "./line-search.ts";
import { sumColumns, usageSchema } from "./store-sqlite-usage-schema.ts";
import {
  addSums,
  byKey,
  bySlot,
  type CountedEntries,
  type Line,
  type LineKind,
  noSums,
  sumNames,
  type UsageCursor,
  type UsageKind,
  type UsageSums,
  uncounted,
} from "./usage.ts";
import {
  type GroupQuery,
  type KeyTotal,
  type UsageGroup,
  type UsageRow,
  type UsageStore,
  usualKind,
  usualStatus,
} from "./usage-store.ts";

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
    groups: (query) => read(() => readGroups(db, query)),
    lines: (query) => searchLines(query, (stretch) => readLines(db, stretch)),
    find: (accountId, keyId, id) =>
      findLine({ accountId, keyId, id }, (stretch) => readLines(db, stretch)),
    rows: (wallet) => readRows(db, wallet),
  };
}

function walletId(db: SqlRunner, { accountId, unit }: WalletRef): SqlValue | undefined {
  const sql = "SELECT id FROM ledger_wallet WHERE account_id = ? AND unit = ?";
  return db.get(sql, accountId, unit)?.id;
}

function readCursor(db: SqlRunner, wallet: WalletRef): UsageCursor {
  const id = walletId(db, wallet);
  if (id === undefined) return uncounted;
  const row = db.get("SELECT n, balance FROM ledger_usage_cursor WHERE wallet = ?", id);
  if (!row) return uncounted;
  const n = Number(row.n);
  // Rollup and totals are written together, and only ever by one release.
  return { n, balance: row.balance as bigint, keysN: n };
}

/** Does nothing where another call has counted meanwhile. The next count goes on from its end. */
function write(
  tx: SqlRunner,
  wallet: WalletRef,
  before: UsageCursor,
  { cursor, lines, steps, keySteps }: CountedEntries,
): void {
  const id = walletId(tx, wallet);
  if (id === undefined || readCursor(tx, wallet).n !== before.n) return;
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
  for (const [first, ...rest] of bySlot(steps).values()) {
    if (!first) continue;
    const { hour, keyId, kind, model } = first.slot;
    const sums = rest.reduce((sum, step) => addSums(sum, step.sums), first.sums);
    const n = rest.at(-1)?.n ?? first.n;
    const values = sumNames.map((name) => sums[name]);
    tx.run(addToRow, accountId, hour, keyId, kind, model, unit, n, ...values);
  }
  for (const [keyId, { n, spent }] of byKey(keySteps)) {
    tx.run(addToTotal, accountId, unit, keyId, n, spent);
  }
  tx.run(
    `INSERT INTO ledger_usage_cursor VALUES (?, ?, ?)
     ON CONFLICT (wallet) DO UPDATE SET n = excluded.n, balance = excluded.balance`,
    id,
    cursor.n,
    cursor.balance,
  );
}

const addToRow = `INSERT INTO ledger_usage VALUES (?, ?, ?, ?, ?, ?, ?, ${sumColumns.map(() => "?").join(", ")})
  ON CONFLICT (account_id, hour, key_id, kind, model, unit) DO UPDATE SET n = excluded.n,
  ${sumColumns.map((name) => `${name} = ${name} + excluded.${name}`).join(", ")}`;

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
    `SELECT w.id, w.account_id, w.unit, w.n > coalesce(c.n, 0) AS is_behind FROM ledger_wallet w
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

function readGroups(db: SqlRunner, query: GroupQuery): UsageGroup[] {
  const { accountId, from, until, width, keyIds, models, kinds } = query;
  const conditions = ["account_id = ?", "hour >= ?", "hour < ?"];
  const values: SqlValue[] = [width, accountId, from, until];
  const only = (column: string, list: readonly string[] | undefined) => {
    if (!list) return;
    conditions.push(`${column} IN (SELECT value FROM json_each(?))`);
    values.push(JSON.stringify(list));
  };
  only("key_id", keyIds);
  only("model", models);
  only("kind", kinds);
  const by = [
    "hour - hour % ? AS start",
    "unit",
    query.byKey ? "key_id" : "'' AS key_id",
    query.byModel ? "model" : "'' AS model",
    query.byKind ? "kind" : "'' AS kind",
  ];
  const sums = sumColumns.map((name) => `sum(${name}) AS ${name}`);
  // The index is named, as for lines. Otherwise the hours of all keys are searched.
  const sql = `SELECT ${[...by, ...sums].join(", ")} FROM ledger_usage
    ${keyIds ? "INDEXED BY ledger_usage_key" : ""} WHERE ${conditions.join(" AND ")} GROUP BY 1, 2, 3, 4, 5`;
  return db.all(sql, ...values).map((row) => ({
    start: Number(row.start),
    unit: row.unit as Unit,
    keyId: String(row.key_id),
    model: String(row.model),
    kind: String(row.kind) as UsageKind | "",
    sums: sumsOf(row),
  }));
}

/**
 * Lines by an index, newest or oldest first. The index is named. By itself SQLite goes through all lines of the account, because they
 * have the requested order. A named index that a query cannot use is an error.
 */
function selectLines(index: LineIndex): string {
  const by = index === "all" ? "" : `INDEXED BY ledger_line_${index}`;
  return `SELECT l.*, e.ref FROM ledger_line l ${by}
    LEFT JOIN ledger_entry e ON e.wallet = l.wallet AND e.n = l.n
    WHERE l.account_id = ? ${indexConditions[index]}`;
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

async function readLines(
  db: SqlRunner,
  { accountId, index, value, beyond, isRising, limit }: LineStretch,
): Promise<Line[]> {
  const order = isRising ? "ASC" : "DESC";
  const place = beyond ? `AND (l.at, l.unit, l.n) ${isRising ? ">" : "<"} (?, ?, ?)` : "";
  const sql = `${selectLines(index)} ${place}
     ORDER BY l.at ${order}, l.unit ${order}, l.n ${order} LIMIT ?`;
  const values = [
    accountId,
    ...(value === undefined ? [] : [value]),
    ...(beyond ? [beyond.at, beyond.unit, beyond.n] : []),
    limit,
  ];
  return db.all(sql, ...values).map(lineOf);
}

async function* readRows(
  db: SqliteDatabase,
  { accountId, unit }: WalletRef,
): AsyncIterable<readonly UsageRow[]> {
  let last: SqlValue[] = [-1, "", "", ""];
  for (;;) {
    const rows = db.all(
      `SELECT * FROM ledger_usage WHERE account_id = ? AND (hour, key_id, kind, model) > (?, ?, ?, ?)
         AND unit = ? ORDER BY hour, key_id, kind, model LIMIT ?`,
      accountId,
      ...last,
      unit,
      usageRowsPage,
    );
    yield rows.map((row) => ({
      slot: {
        hour: Number(row.hour),
        keyId: String(row.key_id),
        kind: row.kind as UsageKind,
        model: String(row.model),
      },
      sums: sumsOf(row),
      n: Number(row.n),
    }));
    const end = rows.at(-1);
    if (!end || rows.length < usageRowsPage) return;
    last = [end.hour, end.key_id, end.kind, end.model] as SqlValue[];
    // Other requests come first.
    await turn();
  }
}

function sumsOf(row: SqlRow): UsageSums {
  const sums = { ...noSums };
  for (const [i, name] of sumNames.entries()) sums[name] = row[sumColumns[i] ?? ""] as bigint;
  return sums;
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
