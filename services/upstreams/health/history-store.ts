// Keeps the hours of `history.ts` in the database.

import { documentsIn, openDocuments } from "#kit/documents/open.ts";
import type { Component, DocumentsSchema } from "#kit/documents/schema.ts";
import type { Database } from "#kit/store/database.ts";
import { type HourRow, noCounts, sumOfCounts } from "./hours.ts";

/** The hours of upstreams, by model. Methods refuse with SERVICE_UNAVAILABLE where the store is away. */
export interface HistoryStore {
  /** Makes the table or the collection, and its index. To be called once, first of all. */
  open(): Promise<void>;
  /** Adds counts to those of their hour. Where it rejects, it is not known whether they were added. */
  add(row: HourRow): Promise<void>;
  /** The rows of an hour and of all later ones, the oldest first, some at a time. */
  since(hour: number): AsyncIterable<readonly HourRow[]>;
  /** Deletes the rows of hours before this one. */
  forget(before: number): Promise<void>;
}

/** Rows of one read. Each has some hundred bytes. */
const page = 1_000;

interface HourDocument extends HourRow {
  /** `<hour>:<upstream>:<model>`. */
  rowId: string;
}

const indexes = { hour: { key: { hour: 1, rowId: 1 } } } as const;

const hourSchema: DocumentsSchema<HourDocument, keyof typeof indexes> = {
  name: "upstream_hour",
  id: "rowId",
  columns: { hour: "integer" },
  indexes,
  compare: { version: "version" },
  changeName: "change",
};

const tables = [
  `CREATE TABLE upstream_hour (
     row_id TEXT PRIMARY KEY,
     hour INTEGER NOT NULL,
     doc TEXT NOT NULL
   ) STRICT`,
];

/** The documents of the hours, and their table in SQLite. */
export const historyComponent: Component = {
  ...{ name: "upstream_history", kinds: [hourSchema], tables },
};

/** The hours in the process's database: a document for each hour, upstream and model, which all processes share. */
export function createHistoryStore(database: Database): HistoryStore {
  const rows = documentsIn(database, hourSchema);
  return {
    open: () => openDocuments(database, historyComponent),
    async add({ hour, upstream, model, ...counts }) {
      const of = { rowId: `${hour}:${upstream}:${model}`, hour, upstream, model };
      const first: HourDocument = { ...of, ...noCounts() };
      const added = (row: HourDocument): HourDocument => ({ ...of, ...sumOfCounts(row, counts) });
      // Named, so that counts are not added twice where an answer was lost.
      await rows.change(of.rowId, added, { named: true, first });
    },
    async *since(hour) {
      for (let behind: [number, string?] = [hour - 1]; ; ) {
        const found = await rows.seek("hour", { behind: behind as [number], limit: page });
        yield found.map(({ rowId: _, ...row }) => row);
        const last = found.at(-1);
        if (!last || found.length < page) return;
        behind = [last.hour, last.rowId];
      }
    },
    async forget(before) {
      await rows.removeSome("hour", { upTo: before - 1 });
    },
  };
}
