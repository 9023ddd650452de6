// Keeps stored keys of upstreams as documents, in SQLite or MongoDB.

import { documentsIn, openDocuments } from "#kit/documents/open.ts";
import type { Component, DocumentsSchema } from "#kit/documents/schema.ts";
import type { Database } from "#kit/store/database.ts";
import type { StoredKey, StoredKeyStore } from "./stored-key.ts";

const indexes = { age: { key: { setAtMs: 1, name: 1 } } } as const;

const keySchema: DocumentsSchema<StoredKey, keyof typeof indexes> = {
  name: "catalog_stored_key",
  id: "name",
  columns: { setAtMs: "integer", sealed: "text" },
  indexes,
  // Each seal of a key is another text.
  compare: { fields: ["sealed"] },
};

const tables = [
  `CREATE TABLE catalog_stored_key (
     name TEXT PRIMARY KEY,
     set_at_ms INTEGER NOT NULL,
     sealed TEXT NOT NULL,
     doc TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;`,
];

/** The stored keys, and their table in SQLite. */
export const storedKeyComponent: Component = { name: "stored_key", kinds: [keySchema], tables };

/** The stored keys in the process's database. */
export function createStoredKeyStore(database: Database): StoredKeyStore {
  const keys = documentsIn(database, keySchema);
  return {
    open: () => openDocuments(database, storedKeyComponent),
    async set(key) {
      await keys.change(key.name, () => key, { first: key });
    },
    async reseal({ name, sealed: was }, sealed) {
      await keys.set(name, { sealed: was }, { sealed });
    },
    list: () => keys.seek("age", { upTo: Number.MAX_SAFE_INTEGER }),
    remove: (name) => keys.remove(name),
  };
}
