import type { SqliteDatabase, SqlRow } from "#kit/store/sqlite.ts";
import type { ActionStore, OperatorAction } from "./action.ts";

/** Tables, step by step; the triggers keep the log against a slip of the hand. */
const schema: readonly string[] = [
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
   CREATE TRIGGER audit_action_ends_once BEFORE UPDATE ON audit_action WHEN old.outcome IS NOT NULL
     BEGIN SELECT RAISE(ABORT, 'an action ends once'); END;
   CREATE TRIGGER audit_action_no_delete BEFORE DELETE ON audit_action
     BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;`,
];

/** The audit log in SQLite. */
export function createSqliteActionStore(db: SqliteDatabase): ActionStore {
  return {
    open: async () => db.migrate("audit", schema),
    begin: async (action) => {
      const { actionId, actor, accountId, target, details, beganAtMs } = action;
      const values = [actionId, actor, action.action, accountId, target, details, beganAtMs];
      await db.write((tx) => tx.run(beginSql, ...values));
    },
    end: async ({ actionId, outcome, reason, accountId, target, endedAtMs }) => {
      const values = [outcome, reason, endedAtMs, accountId, accountId, target, target, actionId];
      await db.write((tx) => tx.run(endSql, ...values));
    },
    list: async ({ accountId, after, limit }) => {
      const own = accountId === "" ? [] : [accountId];
      const from = [after?.beganAtMs ?? Number.MAX_SAFE_INTEGER, after?.actionId ?? ""];
      return db.all(listSql(own.length > 0), ...own, ...from, limit).map(actionOf);
    },
  };
}

const beginSql = `INSERT INTO audit_action (action_id, actor, action, account_id, target, details, began_at_ms)
  VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`;
const endSql = `UPDATE audit_action SET outcome = ?, reason = ?, ended_at_ms = ?,
  account_id = CASE WHEN ? = '' THEN account_id ELSE ? END,
  target = CASE WHEN ? = '' THEN target ELSE ? END WHERE action_id = ? AND outcome IS NULL`;
const listSql = (ofAccount: boolean) => `SELECT * FROM audit_action
  WHERE ${ofAccount ? "account_id = ? AND" : ""} (began_at_ms, action_id) < (?, ?)
  ORDER BY began_at_ms DESC, action_id DESC LIMIT ?`;

function actionOf(row: SqlRow): OperatorAction {
  return {
    actionId: String(row.action_id),
    actor: String(row.actor),
    action: String(row.action),
    accountId: String(row.account_id),
    target: String(row.target),
    details: String(row.details),
    beganAtMs: Number(row.began_at_ms),
    ...(row.ended_at_ms === null ? {} : { endedAtMs: Number(row.ended_at_ms) }),
    ...(row.outcome === null ? {} : { outcome: row.outcome as "done" | "refused" }),
    ...(row.reason === null || row.reason === "" ? {} : { reason: String(row.reason) }),
  };
}
