// Keeps the documents of `port.ts` in SQLite. `open.ts` chooses it where the process has SQLite. `mongo.ts` does the same in
// MongoDB.

import { memo } from "#kit/base/memo.ts";
import type { SqliteDatabase, SqlRow, SqlRunner, SqlValue } from "#kit/store/sqlite.ts";
import { type Documents, type Fit, removed, type Stretch } from "./port.ts";
import {
  type AnySchema,
  type ColumnKind,
  type Component,
  type Condition,
  changesOf,
  type DocumentsIndex,
  type DocumentsSchema,
} from "./schema.ts";

/** Makes the tables of a component, and those of their indexes that are not there yet. */
export function migrateSqliteDocuments(db: SqliteDatabase, { name, kinds, tables }: Component) {
  db.migrate(name, tables);
  for (const kind of kinds) {
    for (const [index, definition] of Object.entries(kind.indexes)) {
      const { key, unique } = definition;
      const columns = Object.entries(key).map(
        ([field, direction]) => `${columnOf(field)}${direction === 1 ? "" : " DESC"}`,
      );
      const conditions = conditionsSql(definition);
      db.run(`CREATE ${unique ? "UNIQUE " : ""}INDEX IF NOT EXISTS ${kind.name}_${index}
        ON ${kind.name} (${columns.join(", ")})
        ${conditions.length > 0 ? `WHERE ${conditions.join(" AND ")}` : ""}`);
    }
  }
}

/** Documents in SQLite: a row each. Fields with a column are there alone, the others are JSON beside them. */
export function createSqliteDocuments<D extends object, I extends string>(
  db: SqliteDatabase,
  schema: DocumentsSchema<D, I>,
): Documents<D, I> {
  const { name, indexes } = schema;
  const rows = createRows<D>(schema);
  const select = createSelect(schema);
  const ids = (index: I, stretch: Stretch) => select(rows.id, index, stretch);
  const found = (index: I, stretch: Stretch): number => {
    const { sql, values } = ids(index, { ...stretch, limit: 1 });
    return db.all(sql, ...values).length;
  };
  return {
    insert: (doc) => db.write((tx) => rows.insert(tx, doc)),
    find: async (id) => rows.read(db, id),
    change: (id, step, { first } = {}) =>
      db.write((tx) => {
        const known = rows.read(tx, id);
        const before = known ?? first;
        const after = before && step(before);
        if (!before || !after) return undefined;
        if (!known) return after !== removed && rows.insert(tx, after) ? after : undefined;
        if (after === removed) rows.remove(tx, id);
        else rows.update(tx, id, after, changesOf(before, after));
        return after === removed ? before : after;
      }),
    async set(id, fit, values) {
      const { sql, cells } = rows.setting(values);
      const { where, bounds } = rows.fitting(id, fit);
      return (await db.write((tx) => tx.run(`${sql} ${where}`, ...cells, ...bounds))) === 1;
    },
    remove: async (id, fit = {}) => {
      const { where, bounds } = rows.fitting(id, fit);
      await db.write((tx) => tx.run(`DELETE FROM ${name} WHERE ${rows.id} ${where}`, ...bounds));
    },
    async seek<K extends keyof D>(index: I, stretch: Stretch & { without?: readonly K[] }) {
      const { without = [] } = stretch;
      const { sql, values } = select(rows.columnsWithout(without), index, stretch);
      return db.all(sql, ...values).map((row): Omit<D, K> => rows.documentOf(row, without));
    },
    async firstOfNext(index, { behind, upTo }) {
      // A seek for each value: SQLite does not skip within an index by itself.
      const [first = "", second = ""] = Object.keys(indexes[index].key).map(columnOf);
      const columns = `${rows.id}, ${first}, ${second}`;
      const { sql, values } = select(columns, index, { behind: [behind], limit: 1 });
      for (let row = db.get(sql, ...values); row; row = db.get(sql, ...values)) {
        if ((row[second] ?? 0) <= upTo) return rows.read(db, String(row[rows.id]));
        values[0] = row[first] ?? null;
      }
      return undefined;
    },
    async count(index, stretch) {
      const { sql, values } = select("count(*) AS n", index, stretch);
      return Number(db.get(sql, ...values)?.n);
    },
    async setSome(index, stretch, values) {
      // Mostly there are none: then no transaction is begun.
      if (found(index, stretch) === 0) return 0;
      const { sql, values: where } = ids(index, stretch);
      const { sql: set, cells } = rows.setting(values);
      return db.write((tx) => tx.run(`${set} IN (${sql})`, ...cells, ...where));
    },
    async removeSome(index, stretch) {
      if (found(index, stretch) === 0) return 0;
      const { sql, values } = ids(index, stretch);
      return db.write((tx) =>
        tx.run(`DELETE FROM ${name} WHERE ${rows.id} IN (${sql})`, ...values),
      );
    },
  };
}

/** A column of a table. */
interface Column {
  /** Of the document; "idem.key" is a field within a field. */
  field: string;
  name: string;
  kind: ColumnKind;
  /** Its cell of a document. */
  cell(doc: object): SqlValue;
}

/** The rows of a table, and how they are documents. */
function createRows<D extends object>(schema: AnySchema) {
  const all = Object.entries({ [schema.id]: "text", ...schema.columns } as Record<
    string,
    ColumnKind
  >);
  const columns = all.map(
    ([field, kind]): Column => ({ field, name: columnOf(field), kind, cell: cellIn(field) }),
  );
  /** These are not in the JSON. */
  const own = columns.filter(({ field }) => !field.includes("."));
  const isOwn = new Set(own.map(({ field }) => field));
  const id = columnOf(schema.id);
  const names = columns.map(({ name }) => name).join(", ");
  const insertSql = `INSERT INTO ${schema.name} (${names}, doc)
    VALUES (${columns.map(() => "?").join(", ")}, ?) ON CONFLICT DO NOTHING`;
  const readSql = `SELECT ${own.map(({ name }) => name).join(", ")}, doc FROM ${schema.name} WHERE ${id} = ?`;
  const removeSql = `DELETE FROM ${schema.name} WHERE ${id} = ?`;
  const jsonOf = (doc: D) => {
    const rest: Record<string, unknown> = {};
    for (const field of Object.keys(doc)) {
      if (!isOwn.has(field)) rest[field] = doc[field as keyof D];
    }
    return JSON.stringify(rest);
  };
  const documentOf = (row: SqlRow, without: readonly PropertyKey[] = []): D => {
    const doc: Record<string, unknown> = JSON.parse(String(row.doc));
    for (const { field, name, kind } of own) {
      const cell = row[name];
      if (cell !== null && cell !== undefined) doc[field] = fieldOf(kind, cell);
    }
    for (const field of without) delete doc[String(field)];
    return doc as D;
  };
  /** The statement of a change of some fields. Making its text takes as long as running it. */
  const changing = memo((names: string) => {
    const fields = names.split(",");
    const changed = columns.filter(({ field }) => fields.includes(field.split(".")[0] ?? ""));
    const other = fields.find((field) => !isOwn.has(field));
    const sets = [...changed.map(({ name }) => name), ...(other === undefined ? [] : ["doc"])];
    const sql = `UPDATE ${schema.name} SET ${sets.map((name) => `${name} = ?`).join(", ")} WHERE ${id}`;
    return { sql, changed, other };
  });
  return {
    id,
    documentOf,
    /** Sets columns alone. */
    setting(values: Partial<D>) {
      const { sql, changed, other } = changing(Object.keys(values).join());
      if (other !== undefined) throw new Error(`${schema.name}: ${other} has no column`);
      return { sql, cells: changed.map(({ cell }) => cell(values)) };
    },
    /** The condition for a document that fits, behind the name of the id. */
    fitting(key: string, fit: Fit): { where: string; bounds: SqlValue[] } {
      let where = "= ?";
      const bounds: SqlValue[] = [key];
      for (const [field, wanted] of Object.entries(fit)) {
        where += ` AND ${fitSql(columnOf(field), wanted)}`;
        bounds.push(...boundsOf(wanted));
      }
      return { where, bounds };
    },
    columnsWithout: (without: readonly PropertyKey[]) =>
      [...own.filter(({ field }) => !without.includes(field)).map(({ name }) => name), "doc"].join(
        ", ",
      ),
    read(from: SqlRunner, key: string): D | undefined {
      const row = from.get(readSql, key);
      return row && documentOf(row);
    },
    insert: (tx: SqlRunner, doc: D): boolean =>
      tx.run(insertSql, ...columns.map(({ cell }) => cell(doc)), jsonOf(doc)) === 1,
    update(tx: SqlRunner, key: string, doc: D, changes: Partial<D>): void {
      const fields = Object.keys(changes);
      if (fields.length === 0) return;
      const { sql, changed, other } = changing(fields.join());
      const cells = changed.map(({ cell }) => cell(changes));
      if (other !== undefined) cells.push(jsonOf(doc));
      tx.run(`${sql} = ?`, ...cells, key);
    },
    remove: (tx: SqlRunner, key: string): void => void tx.run(removeSql, key),
  };
}

type Wanted = Fit[string];

function fitSql(column: string, wanted: Wanted): string {
  if (typeof wanted !== "object") return `${column} = ?`;
  if ("there" in wanted) return `${column} IS ${wanted.there ? "NOT " : ""}NULL`;
  if ("upTo" in wanted) return `${column} <= ?`;
  if ("absentOrBelow" in wanted) return `ifnull(${column} < ?, TRUE)`;
  return `${column} IN (${wanted.map(() => "?").join(", ")})`;
}

function boundsOf(wanted: Wanted): SqlValue[] {
  if (typeof wanted !== "object") return [cellOf(wanted)];
  if ("there" in wanted) return [];
  if ("upTo" in wanted) return [wanted.upTo];
  return "absentOrBelow" in wanted ? [wanted.absentOrBelow] : wanted.map(cellOf);
}

function createSelect(schema: AnySchema) {
  const known = new Map<string, string>();
  return (
    columns: string,
    index: string,
    stretch: Stretch,
  ): { sql: string; values: SqlValue[] } => {
    const { of = [], behind = [], upTo, and = {}, newestFirst = false, skip, limit } = stretch;
    const lists = of.map(Array.isArray);
    const shape = [index, lists, behind.length, upTo !== undefined, Object.keys(and), newestFirst];
    const key = `${shape.join()} ${columns}`;
    const sql = known.get(key) ?? selectSql(schema, columns, index, stretch);
    known.set(key, sql);
    const values = of.map((value) =>
      Array.isArray(value) ? JSON.stringify(value) : cellOf(value),
    );
    values.push(...behind.map(cellOf), ...(upTo === undefined ? [] : [cellOf(upTo)]));
    values.push(...Object.values(and).map(cellOf), limit ?? -1, skip ?? 0);
    return { sql, values };
  };
}

/** Its parameters: values of `of`, `behind`, `upTo` and `and`, limit and offset. */
function selectSql(
  { name, indexes }: AnySchema,
  columns: string,
  index: string,
  { of = [], behind = [], upTo, and = {}, newestFirst }: Stretch,
): string {
  const definition = indexes[index] as DocumentsIndex;
  const fields = Object.keys(definition.key).map(columnOf);
  const next = of.length + behind.length;
  const place = fields.slice(of.length, next).join(", ");
  const conditions = [
    ...conditionsSql(definition),
    ...of.map((value, i) =>
      Array.isArray(value)
        ? `${fields[i]} IN (SELECT value FROM json_each(?))`
        : `${fields[i]} = ?`,
    ),
    ...(behind.length > 0
      ? [`(${place}) ${newestFirst ? "<" : ">"} (${behind.map(() => "?").join(", ")})`]
      : []),
    ...(upTo === undefined ? [] : [`${fields[next]} <= ?`]),
    ...Object.keys(and).map((field) => `${columnOf(field)} IS ?`),
  ];
  // Documents of several values lie apart.
  const order = of.some(Array.isArray) ? [] : fields.slice(of.length);
  const way = newestFirst ? "DESC" : "ASC";
  // SQLite plans for the value of a bare parameter as limit, and prepares the statement again for each other value.
  return `SELECT ${columns} FROM ${name} INDEXED BY ${name}_${index}
    ${conditions.length > 0 ? `WHERE ${conditions.join(" AND ")}` : ""}
    ${order.length > 0 ? `ORDER BY ${order.map((field) => `${field} ${way}`).join(", ")}` : ""}
    LIMIT ? + 0 OFFSET ?`;
}

function conditionsSql({ where, sqliteWhere }: DocumentsIndex): string[] {
  return Object.entries({ ...where, ...sqliteWhere }).map(conditionSql);
}

function conditionSql([field, condition]: readonly [string, Condition]): string {
  const column = columnOf(field);
  if (condition === "there") return `${column} IS NOT NULL`;
  return condition === "not empty" ? `${column} > ''` : `${column} = '${condition.is}'`;
}

/** accountId: account_id; idem.key: idem_key. */
const columnOf = memo((field: string): string =>
  field.replace(".", "_").replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
);

function cellIn(field: string): Column["cell"] {
  type Fields = Record<string, unknown> | undefined;
  const [first = "", second] = field.split(".");
  if (second === undefined) return (doc) => cellOf((doc as Fields)?.[first]);
  return (doc) => cellOf(((doc as Fields)?.[first] as Fields)?.[second]);
}

function cellOf(value: unknown): SqlValue {
  if (typeof value === "object" && value !== null) return JSON.stringify(value);
  return value === true ? 1 : ((value ?? null) as SqlValue);
}

function fieldOf(kind: ColumnKind, cell: NonNullable<SqlRow[string]>): unknown {
  if (kind === "integer") return Number(cell);
  if (kind === "json") return JSON.parse(String(cell));
  return kind === "flag" ? true : cell;
}
