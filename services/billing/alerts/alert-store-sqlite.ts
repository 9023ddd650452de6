import type { SqliteDatabase, SqlRow, SqlRunner } from "#kit/store/sqlite.ts";
import { mapErrors } from "#kit/store/sqlite-errors.ts";
import { maxAlertsKept } from "../base/limits.ts";
import { type Alert, type AlertType, noSettings, settingsOf, settingsText } from "./alert.ts";
import type { AlertStore } from "./alert-store.ts";

const schema: readonly string[] = [
  `CREATE TABLE ledger_alert_setting (
     account_id TEXT PRIMARY KEY,
     setting TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE ledger_alert (
     alert_id TEXT PRIMARY KEY,
     account_id TEXT NOT NULL,
     key_id TEXT NOT NULL,
     type TEXT NOT NULL,
     body TEXT NOT NULL,
     at INTEGER NOT NULL,
     forget_at INTEGER,
     ended INTEGER NOT NULL
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX ledger_alert_waiting ON ledger_alert (at) WHERE ended = 0;
   CREATE INDEX ledger_alert_over ON ledger_alert (forget_at) WHERE ended = 1 AND forget_at IS NOT NULL;
   CREATE INDEX ledger_alert_account ON ledger_alert (account_id);`,
  // Accounts take turns.
  `CREATE INDEX ledger_alert_turns ON ledger_alert (account_id, at) WHERE ended = 0;
   DROP INDEX ledger_alert_waiting;`,
];

/** Alerts in the process's SQLite file. */
export function createSqliteAlerts(db: SqliteDatabase): AlertStore {
  const read = async <T>(work: () => T): Promise<T> => mapErrors(work);
  const write = <T>(work: (tx: SqlRunner) => T): Promise<T> =>
    db.write((tx) => mapErrors(() => work(tx)));
  const settings = (from: SqlRunner, accountId: string) => {
    const row = from.get(
      "SELECT setting FROM ledger_alert_setting WHERE account_id = ?",
      accountId,
    );
    return row ? settingsOf(String(row.setting)) : noSettings;
  };
  return {
    open: () => read(() => db.migrate("ledger_alerts", schema)),
    settings: (accountId) => read(() => settings(db, accountId)),
    change: (accountId, change) =>
      write((tx) => {
        const after = change(settings(tx, accountId));
        tx.run(
          `INSERT INTO ledger_alert_setting VALUES (?, ?)
             ON CONFLICT (account_id) DO UPDATE SET setting = excluded.setting`,
          accountId,
          settingsText(after),
        );
        return after;
      }),
    add: (alerts) =>
      write((tx) => {
        const count = "SELECT count(*) AS kept FROM ledger_alert WHERE account_id = ?";
        const insert =
          "INSERT INTO ledger_alert VALUES (?, ?, ?, ?, ?, ?, ?, 0) ON CONFLICT DO NOTHING";
        let leftOut = 0;
        for (const [accountId, own] of Map.groupBy(alerts, (one) => one.accountId)) {
          let kept = Number(tx.get(count, accountId)?.kept);
          for (const { alertId, keyId, type, body, at, forgetAt = null } of own) {
            if (kept >= maxAlertsKept) leftOut++;
            else kept += tx.run(insert, alertId, accountId, keyId, type, body, at, forgetAt);
          }
        }
        return leftOut;
      }),
    waiting: ({ afterAccount, accounts, each }) =>
      read(() => {
        const next =
          "SELECT min(account_id) AS id FROM ledger_alert WHERE ended = 0 AND account_id > ?";
        const oldest =
          "SELECT * FROM ledger_alert WHERE ended = 0 AND account_id = ? ORDER BY at LIMIT ?";
        const found: Alert[] = [];
        for (let [i, account] = [0, afterAccount]; i < accounts; i++) {
          const id = db.get(next, account)?.id;
          if (typeof id !== "string") break;
          account = id;
          found.push(...db.all(oldest, id, each).map(alertOf));
        }
        return found;
      }),
    end: (alertId) =>
      write((tx) => void tx.run("UPDATE ledger_alert SET ended = 1 WHERE alert_id = ?", alertId)),
    forget: (now, limit) =>
      write((tx) => {
        const over = `SELECT alert_id FROM ledger_alert
          WHERE ended = 1 AND forget_at IS NOT NULL AND forget_at <= ? LIMIT ?`;
        tx.run(`DELETE FROM ledger_alert WHERE alert_id IN (${over})`, now, limit);
      }),
    erase: (accountId) =>
      write((tx) => {
        tx.run("DELETE FROM ledger_alert_setting WHERE account_id = ?", accountId);
        tx.run("DELETE FROM ledger_alert WHERE account_id = ?", accountId);
      }),
  };
}

function alertOf(row: SqlRow): Alert {
  return {
    alertId: String(row.alert_id),
    accountId: String(row.account_id),
    keyId: String(row.key_id),
    type: row.type as AlertType,
    body: String(row.body),
    at: Number(row.at),
    forgetAt: row.forget_at === null ? undefined : Number(row.forget_at),
  };
}
