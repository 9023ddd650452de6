// Keeps operators as documents, in SQLite or MongoDB.

import { documentsIn, openDocuments } from "#kit/documents/open.ts";
import type { Component, DocumentsSchema } from "#kit/documents/schema.ts";
import type { Database } from "#kit/store/database.ts";
import type { Operator } from "./operator.ts";
import type { OperatorStore } from "./operator-store.ts";

const indexes = { age: { key: { createdAtMs: 1, name: 1 } } } as const;

const operatorSchema: DocumentsSchema<Operator, keyof typeof indexes> = {
  name: "auth_operator",
  id: "name",
  columns: { createdAtMs: "integer" },
  indexes,
  compare: { version: "v" },
  changeName: "changed",
};

const tables = [
  `CREATE TABLE auth_operator (
     name TEXT PRIMARY KEY,
     created_at_ms INTEGER NOT NULL,
     doc TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;`,
];

/** The documents of operators, and their table in SQLite. */
export const operatorComponent: Component = { name: "operator", kinds: [operatorSchema], tables };

/** The operators in a process's database. */
export function createOperatorStore(database: Database): OperatorStore {
  const operators = documentsIn(database, operatorSchema);
  return {
    open: () => openDocuments(database, operatorComponent),
    add: (operator) => operators.insert(operator),
    find: (name) => operators.find(name),
    list: () => operators.seek("age", { upTo: Number.MAX_SAFE_INTEGER }),
    // A change has a name, so that a code whose answer was lost is not used up twice.
    change: (name, step) => operators.change(name, step, { named: true }),
    remove: (name) => operators.remove(name),
  };
}
