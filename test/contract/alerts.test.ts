import { describe, expect, test } from "vitest";
import {
  alertsComponent,
  createAlertStore,
} from "../../services/billing/alerts/store-documents.ts";
import { sqliteFiles } from "../support/sqlite-files.ts";
import { createPlanWatch } from "../support/sqlite-plans.ts";
import { alertContract } from "./alerts.suite.ts";

const { newFile, connect } = sqliteFiles();
const plans = createPlanWatch();

describe("on SQLite", () => {
  alertContract(async () => {
    const file = await newFile();
    return () => ({ kind: "sqlite", sqlite: plans.watched(connect(file)) });
  });

  // It looks at what the tests above have sought.
  test("every search is by an index", () => {
    const own = [...plans.seen].filter((sql) => sql.includes("ledger_alert"));
    expect(own.length).toBeGreaterThan(5);
    expect(plans.scans.filter((scan) => scan.includes("ledger_alert"))).toEqual([]);
  });

  test("rows of an earlier version become documents, and are nowhere else", async () => {
    const db = connect(await newFile());
    db.migrate("ledger_alerts", alertsComponent.tables.slice(0, 2));
    const insert = "INSERT INTO ledger_alert VALUES (?, 'acct_a', ?, 'balance.low', ?, ?, ?, ?)";
    db.run(insert, "evt_a", "", "{\"a\":'ü'}", 5, 9, 0);
    db.run(insert, "evt_b", "key_a", "{}", 4, null, 0);
    db.run(insert, "evt_c", "key_a", "{}", 3, 9, 1);
    const setting = '{"webhookUrl":"https://é.example/\'x","keys":{}}';
    db.run("INSERT INTO ledger_alert_setting VALUES ('acct_a', ?)", setting);
    const store = createAlertStore({ kind: "sqlite", sqlite: db });
    await store.open();
    const both = { accountId: "acct_a", type: "balance.low" };
    const all = { afterAccount: "", accounts: 2, each: 9 };
    const b = { ...both, alertId: "evt_b", keyId: "key_a", body: "{}", at: 4 };
    const a = { ...both, alertId: "evt_a", keyId: "", body: "{\"a\":'ü'}", at: 5, forgetAt: 9 };
    expect(await store.waiting(all)).toStrictEqual([b, a]);
    expect(await store.settings("acct_a")).toEqual({
      webhookUrl: "https://é.example/'x",
      keys: {},
    });
    // An alert that waits is not forgotten. One that has ended is.
    await store.forget(9, 5);
    const kept = db.all("SELECT alert_id AS id FROM ledger_alert ORDER BY 1").map(({ id }) => id);
    expect(kept).toEqual(["evt_a", "evt_b"]);
    const named = db.all(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'ledger%' ORDER BY 1",
    );
    expect(named.map(({ name }) => name)).toEqual(["ledger_alert", "ledger_alert_setting"]);
  });
});
