// Adds to the two rollups in SQLite and reads sums from them. They differ only in the columns that are declared here.
// `store-sqlite-usage.ts` has the rest of usage.

import { turn } from "#kit/base/in-turns.ts";
import type { SqliteDatabase, SqlRow, SqlRunner, SqlValue } from "#kit/store/sqlite.ts";
import { usageRowsPage } from "../base/limits.ts";
import type { Unit, WalletRef } from "../ledger/wallet.ts";
import { noServed, servedName, servedNames } from "./served.ts";
import { servedColumns, sumColumns } from "./store-sqlite-usage-schema.ts";
import {
  addSums,
  bySlot,
  noSums,
  type Sums,
  slotName,
  sumNames,
  type UsageKind,
  type UsageSlot,
} from "./usage.ts";
import type { ServedGroup, ServedQuery } from "./usage-store.ts";

/** A rollup's table. The columns of its sums have the order of their names. */
export interface Rollup<Slot, Name extends string> {
  table: string;
  /** The columns of a slot, in the order of the primary key. */
  slots: readonly string[];
  slotOf(row: SqlRow): Slot;
  nameOf(slot: Slot): string;
  valuesOf(slot: Slot): SqlValue[];
  columns: readonly string[];
  names: readonly Name[];
  zero: Sums<Name>;
}

const usageSlotOf = (row: SqlRow): UsageSlot => ({
  hour: Number(row.hour),
  keyId: String(row.key_id),
  kind: row.kind as UsageKind,
  model: String(row.model),
});
const usageValuesOf = ({ hour, keyId, kind, model }: UsageSlot) => [hour, keyId, kind, model];

/** By key, kind and model. */
export const usageRollup = {
  ...{ table: "ledger_usage", columns: sumColumns, names: sumNames, zero: noSums },
  slots: ["hour", "key_id", "kind", "model"],
  ...{ slotOf: usageSlotOf, nameOf: slotName, valuesOf: usageValuesOf },
} satisfies Rollup<UsageSlot, (typeof sumNames)[number]>;

/** By upstream too. */
export const servedRollup = {
  ...{ table: "ledger_served", columns: servedColumns, names: servedNames, zero: noServed },
  slots: [...usageRollup.slots, "upstream"],
  slotOf: (row: SqlRow) => ({ ...usageSlotOf(row), upstream: String(row.upstream) }),
  nameOf: servedName,
  valuesOf: ({ upstream, ...slot }) => [...usageValuesOf(slot), upstream],
} satisfies Rollup<UsageSlot & { upstream: string }, (typeof servedNames)[number]>;

/** Adds the sums of some entries to their rows. */
export function addToRows<Slot, Name extends string>(
  tx: SqlRunner,
  rollup: Rollup<Slot, Name>,
  { accountId, unit }: WalletRef,
  steps: readonly { n: number; slot: Slot; sums: Sums<Name> }[],
): void {
  const { table, slots, columns, names } = rollup;
  const places = Array(slots.length + columns.length + 3).fill("?");
  const sql = `INSERT INTO ${table} VALUES (${places.join(", ")})
    ON CONFLICT (account_id, ${slots.join(", ")}, unit) DO UPDATE SET n = excluded.n,
    ${columns.map((name) => `${name} = ${name} + excluded.${name}`).join(", ")}`;
  for (const [first, ...rest] of bySlot(steps, rollup.nameOf).values()) {
    if (!first) continue;
    const sums = rest.reduce((sum, step) => addSums(sum, step.sums), first.sums);
    const n = rest.at(-1)?.n ?? first.n;
    const values = names.map((name) => sums[name]);
    tx.run(sql, accountId, ...rollup.valuesOf(first.slot), unit, n, ...values);
  }
}

/** Sums of a rollup in a time. The index is named. Otherwise the hours of all keys are searched. */
export function readGroups<Slot, Name extends string>(
  db: SqlRunner,
  rollup: Rollup<Slot, Name>,
  query: ServedQuery,
) {
  const { accountId, from, until, width, keyIds, models, kinds } = query;
  const conditions = ["hour >= ?", "hour < ?"];
  const values: SqlValue[] = [width, from, until];
  if (accountId !== undefined) {
    conditions.push("account_id = ?");
    values.push(accountId);
  }
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
    query.byUpstream ? "upstream" : "'' AS upstream",
  ];
  const sums = rollup.columns.map((name) => `sum(${name}) AS ${name}`);
  const index = accountId === undefined ? "hour" : keyIds && "key";
  const sql = `SELECT ${[...by, ...sums].join(", ")} FROM ${rollup.table}
    ${index ? `INDEXED BY ${rollup.table}_${index}` : ""} WHERE ${conditions.join(" AND ")}
    GROUP BY 1, 2, 3, 4, 5, 6`;
  return db.all(sql, ...values).map((row) => ({
    start: Number(row.start),
    unit: row.unit as Unit,
    keyId: String(row.key_id),
    model: String(row.model),
    kind: String(row.kind) as UsageKind | "",
    upstream: String(row.upstream),
    sums: sumsOf(rollup, row),
  }));
}

const hourSeconds = 3_600;

/** Sums by upstream. Those of all accounts are read an hour at a time, because other requests come first. */
export async function readServed(db: SqlRunner, query: ServedQuery): Promise<ServedGroup[]> {
  if (query.accountId !== undefined) return readGroups(db, servedRollup, query);
  const groups = new Map<string, ServedGroup>();
  for (let from = query.from; from < query.until; from += hourSeconds) {
    const hour = { ...query, from, until: from + hourSeconds };
    for (const group of readGroups(db, servedRollup, hour)) {
      const { sums, ...slot } = group;
      const name = JSON.stringify(Object.values(slot));
      const known = groups.get(name);
      groups.set(name, known ? { ...known, sums: addSums(known.sums, sums) } : group);
    }
    await turn();
  }
  return [...groups.values()];
}

/** A wallet's rows, by pages. */
export async function* readRows<Slot, Name extends string>(
  db: SqliteDatabase,
  rollup: Rollup<Slot, Name>,
  { accountId, unit }: WalletRef,
): AsyncIterable<readonly { slot: Slot; sums: Sums<Name>; n: number }[]> {
  const { table, slots } = rollup;
  const order = slots.join(", ");
  const sql = `SELECT * FROM ${table} WHERE account_id = ? AND (${order}) > (${slots.map(() => "?").join(", ")})
    AND unit = ? ORDER BY ${order} LIMIT ?`;
  let last = slots.map((_, place): SqlValue => (place === 0 ? -1 : ""));
  for (;;) {
    const rows = db.all(sql, accountId, ...last, unit, usageRowsPage);
    yield rows.map((row) => ({
      slot: rollup.slotOf(row),
      sums: sumsOf(rollup, row),
      n: Number(row.n),
    }));
    const end = rows.at(-1);
    if (!end || rows.length < usageRowsPage) return;
    last = slots.map((name) => end[name] as SqlValue);
    // Other requests come first.
    await turn();
  }
}

function sumsOf<Name extends string>(
  { names, columns, zero }: Pick<Rollup<unknown, Name>, "names" | "columns" | "zero">,
  row: SqlRow,
): Sums<Name> {
  const sums = { ...zero };
  for (const [i, name] of names.entries()) sums[name] = row[columns[i] ?? ""] as bigint;
  return sums;
}
