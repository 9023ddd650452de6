// The form in which a service declares its documents once for both databases: id, columns, indexes, and how changes are noticed.

/** A condition of an index on a field of its documents: the field exists, is a text that is not empty, or has a value. */
export type Condition = "there" | "not empty" | { is: string };

/** An index, the same in both databases. */
export interface DocumentsIndex {
  /** Fields in their order, each rising or falling. */
  key: Readonly<Record<string, 1 | -1>>;
  unique?: true;
  /** Only documents that are so are in it. */
  where?: Readonly<Record<string, Condition>>;
  /** SQLite alone: only those that are so besides. A document that is in fewer indexes is written faster. */
  sqliteWhere?: Readonly<Record<string, Condition>>;
}

/**
 * The kind of a column of SQLite. An integer is a number in documents, a bigint is a bigint, a flag is true or absent, and JSON is an
 * object.
 */
export type ColumnKind = "text" | "integer" | "bigint" | "flag" | "json";

/** How documents of some kind are kept. */
export interface AnySchema {
  /** The collection in MongoDB, the table in SQLite. */
  name: string;
  /** The field that is the id: `_id` in MongoDB. */
  id: string;
  /**
   * Fields with a column in SQLite: those of indexes, those that `set` and `setSome` set, those that decide what fits, and bigints. All others are JSON in the column `doc`,
   * and so are fields within a field ("idem.key"), whose columns are copies. A column is called as its field, in snake case.
   */
  columns: Readonly<Record<string, ColumnKind>>;
  /** By name; a changed index has a new one. */
  indexes: Readonly<Record<string, DocumentsIndex>>;
  /** MongoDB alone: how a change sees that its document is still as it was read. */
  compare:
    | { /** A field that rises with each change. */ version: string }
    | { /** Each change changes one of these. */ fields: readonly string[] };
  /** MongoDB alone: the field for the name of the last change that had one. */
  changeName?: string;
}

/** How documents of one kind are kept, and what their indexes are called. */
export interface DocumentsSchema<D, I extends string> extends AnySchema {
  id: keyof D & string;
  indexes: Readonly<Record<I, DocumentsIndex>>;
}

/** Kinds of documents that one part of a service keeps, under one version of the schema. */
export interface Component {
  /** Under what its version is kept. */
  name: string;
  kinds: readonly AnySchema[];
  /** SQLite's tables, step by step; a step that was shipped is never changed. Their indexes are made from `kinds`. */
  tables: readonly string[];
}

/** Fields that a step changed, with their new values; undefined: it is gone. A value that is the same object has not changed. */
export function changesOf<D extends object>(before: D, after: D): Partial<D> {
  const fields = [...Object.keys(before), ...Object.keys(after)] as (keyof D)[];
  return Object.fromEntries(
    fields.filter((field) => before[field] !== after[field]).map((field) => [field, after[field]]),
  ) as Partial<D>;
}
