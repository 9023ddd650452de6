import { describe, expect, test } from "vitest";
import { createSqliteUsageStore } from "../../services/text/store/store-sqlite.ts";
import { sqliteFiles } from "../support/sqlite-files.ts";
import { keptBesideContract } from "./usage.kept.suite.ts";
import { type UsageStores, usageStoreContract } from "./usage.suite.ts";

const { connect, connectTwice } = sqliteFiles();

describe("usage in SQLite", () => {
  const twoClients: UsageStores = async () => {
    const stores = await connectTwice((db) => createSqliteUsageStore(db));
    for (const store of stores) await store.prepare();
    return stores;
  };
  usageStoreContract(twoClients);
  keptBesideContract(twoClients);

  test("what is due, and a slot, are found by an index, never by a scan", async () => {
    const db = connect(":memory:");
    await createSqliteUsageStore(db).prepare();
    const plan = (sql: string) =>
      db.all(`EXPLAIN QUERY PLAN ${sql}`).map((row) => String(row.detail));
    expect(
      plan("SELECT * FROM text_usage WHERE due_at <= 5 AND status <> 'closed' ORDER BY due_at"),
    ).toEqual([expect.stringContaining("USING INDEX text_usage_due")]);
    expect(
      plan("SELECT * FROM text_usage WHERE key_id = 'a' AND operation = 'b' AND idem_key = 'c'"),
    ).toEqual([expect.stringContaining("USING INDEX text_usage_idem")]);
  });
});
