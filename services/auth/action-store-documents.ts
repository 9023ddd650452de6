// Keeps the operators' audit log as documents, in SQLite or MongoDB. The first release had a table of its own, which the SQL
// turns into documents.

import { documentsIn, openDocuments } from "#kit/documents/open.ts";
import type { Component, DocumentsSchema } from "#kit/documents/schema.ts";
import type { Database } from "#kit/store/database.ts";
import type { ActionStore, OperatorAction } from "./action.ts";

const indexes = {
  time: { key: { beganAtMs: 1, actionId: 1 } },
  of_account: { key: { accountId: 1, beganAtMs: 1, actionId: 1 } },
} as const;

const actionSchema: DocumentsSchema<OperatorAction, keyof typeof indexes> = {
  name: "audit_action",
  id: "actionId",
  columns: {
    ...{ accountId: "text", target: "text", beganAtMs: "integer" },
    ...{ endedAtMs: "integer", outcome: "text", reason: "text" },
  },
  indexes,
  compare: { fields: ["outcome"] },
};

/** The triggers refuse accidental changes of the log. */
const triggers = `
   CREATE TRIGGER audit_action_ends_once BEFORE UPDATE ON audit_action WHEN old.outcome IS NOT NULL
     BEGIN SELECT RAISE(ABORT, 'an action ends once'); END;
   CREATE TRIGGER audit_action_no_delete BEFORE DELETE ON audit_action
     BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;`;

const tables = [
  `CREATE TABLE audit_action (
     action_id TEXT PRIMARY KEY,
     actor TEXT NOT NULL,
     action TEXT NOT NULL,
     account_id TEXT NOT NULL,
     target TEXT NOT NULL,
     details TEXT NOT NULL,
     began_at_ms INTEGER NOT NULL,
     ended_at_ms INTEGER,
     outcome TEXT,
     reason TEXT
   ) STRICT;
   CREATE INDEX audit_action_by_time ON audit_action (began_at_ms, action_id);
   CREATE INDEX audit_action_of_account ON audit_action (account_id, began_at_ms, action_id);
   ${triggers}`,
  // Rows become documents.
  `ALTER TABLE audit_action RENAME TO audit_action_rows;
   CREATE TABLE audit_action (
     action_id TEXT PRIMARY KEY,
     account_id TEXT NOT NULL,
     target TEXT NOT NULL,
     began_at_ms INTEGER NOT NULL,
     ended_at_ms INTEGER,
     outcome TEXT,
     reason TEXT,
     doc TEXT NOT NULL
   ) STRICT;
   INSERT INTO audit_action SELECT action_id, account_id, target, began_at_ms, ended_at_ms, outcome, nullif(reason, ''),
     json_object('actor', actor, 'action', action, 'details', details)
     FROM audit_action_rows;
   DROP TABLE audit_action_rows;
   ${triggers}`,
];

/** The documents of the audit log, and their tables in SQLite. */
export const auditComponent: Component = { name: "audit", kinds: [actionSchema], tables };

/** The audit log in the process's database. A line is a document. */
export function createActionStore(database: Database): ActionStore {
  const actions = documentsIn(database, actionSchema);
  return {
    open: () => openDocuments(database, auditComponent),
    async begin(action) {
      await actions.insert(action);
    },
    async end({ actionId, outcome, reason, accountId, target, endedAtMs }) {
      const named = Object.entries({ reason, accountId, target }).filter(([, text]) => text !== "");
      const end = { outcome, endedAtMs, ...Object.fromEntries(named) };
      await actions.set(actionId, { outcome: { there: false } }, end);
    },
    list({ accountId, after, limit }) {
      const place = after
        ? { behind: [after.beganAtMs, after.actionId] }
        : { upTo: Number.MAX_SAFE_INTEGER };
      const page = { ...place, newestFirst: true, limit };
      if (accountId === "") return actions.seek("time", page);
      return actions.seek("of_account", { of: [accountId], ...page });
    },
  };
}
