import { describe, expect, test } from "vitest";
import { createSqliteWebhookStore } from "../../services/media/webhooks/store-sqlite.ts";
import { sqliteFiles } from "../support/sqlite-files.ts";
import { webhookStoreContract } from "./webhooks.suite.ts";

const { newFile, connect, connectTwice } = sqliteFiles();

describe("webhooks in SQLite", () => {
  webhookStoreContract(async () => {
    const stores = await connectTwice((db) => createSqliteWebhookStore(db));
    for (const store of stores) await store.open();
    return stores;
  });

  test.each([
    [
      "an account's first due",
      "WHERE due_at IS NOT NULL AND account_id > 'a' ORDER BY account_id, due_at LIMIT 1",
    ],
    [
      "a page",
      "WHERE account_id = 'a' AND (created_at, webhook_id) < (1, 'a') ORDER BY created_at DESC, webhook_id DESC",
    ],
    ["what is put off", "WHERE due_at > 1 LIMIT 1"],
    ["what is over", "WHERE expires_at <= 1 LIMIT 1"],
  ])("%s is found by an index", async (_, where) => {
    const db = connect(await newFile());
    await createSqliteWebhookStore(db).open();
    const plan = db
      .all(`EXPLAIN QUERY PLAN SELECT * FROM media_webhook ${where}`)
      .map(({ detail }) => String(detail));
    expect(plan.filter((step) => /^SCAN|TEMP B-TREE/.test(step))).toEqual([]);
  });
});
