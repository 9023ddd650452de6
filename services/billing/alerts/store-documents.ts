// Keeps alerts and their settings as documents, in SQLite or MongoDB. The SQL is there because the first releases had tables of
// their own for them.

import { documentsIn, openDocuments } from "#kit/documents/open.ts";
import type { Component, DocumentsSchema } from "#kit/documents/schema.ts";
import type { Database } from "#kit/store/database.ts";
import { alertsAddedAtOnce, maxAlertsKept } from "../base/limits.ts";
import { type Alert, type AlertSettings, noSettings, settingsOf, settingsText } from "./alert.ts";
import type { AlertStore } from "./alert-store.ts";

interface KeptSettings {
  accountId: string;
  /** `settingsText`. */
  setting: string;
}

interface KeptAlert extends Alert {
  /** It has not ended. */
  waiting?: true | undefined;
}

const indexes = {
  turns: { key: { waiting: 1, accountId: 1, at: 1 }, where: { waiting: "there" } },
  over: { key: { forgetAt: 1 }, where: { forgetAt: "there" } },
  account: { key: { accountId: 1 } },
} as const;

const alertSchema: DocumentsSchema<KeptAlert, keyof typeof indexes> = {
  name: "ledger_alert",
  id: "alertId",
  columns: { accountId: "text", at: "integer", forgetAt: "integer", waiting: "flag" },
  indexes,
  compare: { fields: ["waiting"] },
};

const settingsSchema: DocumentsSchema<KeptSettings, never> = {
  name: "ledger_alert_setting",
  id: "accountId",
  columns: { setting: "text" },
  indexes: {},
  compare: { fields: ["setting"] },
};

const tables = [
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
  // Rows become documents. The old tables go at once, because data that is erased from now on must stand nowhere else.
  `ALTER TABLE ledger_alert RENAME TO ledger_alert_rows;
   CREATE TABLE ledger_alert (
     alert_id TEXT PRIMARY KEY,
     account_id TEXT NOT NULL,
     at INTEGER NOT NULL,
     forget_at INTEGER,
     waiting INTEGER,
     doc TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;
   INSERT INTO ledger_alert SELECT alert_id, account_id, at, forget_at, CASE ended WHEN 0 THEN 1 END,
     json_object('keyId', key_id, 'type', type, 'body', body) FROM ledger_alert_rows;
   DROP TABLE ledger_alert_rows;
   ALTER TABLE ledger_alert_setting ADD COLUMN doc TEXT NOT NULL DEFAULT '{}';`,
];

/** The tables, collections and indexes of alerts. */
export const alertsComponent: Component = {
  name: "ledger_alerts",
  kinds: [alertSchema, settingsSchema],
  tables,
};

/** The store of alerts in a process's database, beside the journals. */
export function createAlertStore(database: Database): AlertStore {
  const alerts = documentsIn(database, alertSchema);
  const settings = documentsIn(database, settingsSchema);
  /** Answers how many were left out. */
  const addOf = async (accountId: string, found: readonly Alert[]): Promise<number> => {
    let kept = await alerts.count("account", { of: [accountId] });
    let left = found;
    while (left.length > 0 && kept < maxAlertsKept) {
      const some = left.slice(0, Math.min(maxAlertsKept - kept, alertsAddedAtOnce));
      const isNew = await Promise.all(
        some.map((alert) => alerts.insert({ ...alert, waiting: true })),
      );
      kept += isNew.filter(Boolean).length;
      left = left.slice(some.length);
    }
    return left.length;
  };
  return {
    open: () => openDocuments(database, alertsComponent),
    settings: async (accountId) => settingsIn(await settings.find(accountId)),
    async change(accountId, change) {
      const step = (before: KeptSettings): KeptSettings => ({
        accountId,
        setting: settingsText(change(settingsIn(before))),
      });
      const first = { accountId, setting: settingsText(noSettings) };
      return settingsIn(await settings.change(accountId, step, { first }));
    },
    async add(found) {
      let leftOut = 0;
      for (const [accountId, own] of Map.groupBy(found, (one) => one.accountId)) {
        leftOut += await addOf(accountId, own);
      }
      return leftOut;
    },
    async waiting({ afterAccount, accounts, each }) {
      const found: KeptAlert[] = [];
      for (let [i, account] = [0, afterAccount]; i < accounts; i++) {
        // Those of the next account come first.
        const next = await alerts.seek("turns", { of: [true], behind: [account], limit: each });
        const [first] = next;
        if (!first) break;
        account = first.accountId;
        found.push(...next.filter((one) => one.accountId === account));
      }
      return found.map(({ waiting: _, ...alert }) => alert);
    },
    async end(alertId) {
      await alerts.set(alertId, {}, { waiting: undefined });
    },
    async forget(now, limit) {
      await alerts.removeSome("over", { upTo: now, and: { waiting: null }, limit });
    },
    async erase(accountId) {
      await settings.remove(accountId);
      await alerts.removeSome("account", { of: [accountId] });
    },
  };
}

function settingsIn(kept: KeptSettings | undefined): AlertSettings {
  return kept ? settingsOf(kept.setting) : noSettings;
}
