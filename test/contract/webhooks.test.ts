import { describe, expect, test } from "vitest";
import {
  createWebhookStore,
  webhooksComponent,
} from "../../services/media/webhooks/store-documents.ts";
import { sqliteFiles } from "../support/sqlite-files.ts";
import { createPlanWatch } from "../support/sqlite-plans.ts";
import { webhookStoreContract } from "./webhooks.suite.ts";

const { newFile, connect, connectTwice } = sqliteFiles();

const plans = createPlanWatch();

describe("webhooks in SQLite", () => {
  webhookStoreContract(async () => {
    const stores = await connectTwice((db) =>
      createWebhookStore({ kind: "sqlite", sqlite: plans.watched(db) }),
    );
    for (const store of stores) await store.open();
    return stores;
  });

  // Checks the searches of the tests above.
  test("every search is by an index", () => {
    expect(plans.seen.size).toBeGreaterThan(10);
    expect(plans.scans).toEqual([]);
  });

  test("rows of an earlier version become documents, and are nowhere else", async () => {
    const db = connect(await newFile());
    db.migrate("media_webhooks", webhooksComponent.tables.slice(0, 3));
    const insert = `INSERT INTO media_webhook (webhook_id, account_id, key_id, job_id, type, url, host, body, created_at, state,
      attempts, due_at, give_up_at, last_attempt_at, last_status, last_error, expires_at)
      VALUES (?, 'acct_a', ?, 'job_a', 'job.failed', 'https://é.example/''x"', ?, ?, 5, ?, 2, ?, 9, ?, ?, ?, ?)`;
    db.run(insert, "evt_a", null, null, "{\"a\":'ü'}", "pending", 7, null, null, null, null);
    db.run(insert, "evt_b", "key_a", "é.example", "", "failed", null, 6, 500, "status", 8);
    const secret = "INSERT INTO media_webhook_secret VALUES (?, 'now', 3, ?, ?, ?)";
    db.run(secret, "acct_a", "before", 4, "op");
    db.run(secret, "acct_b", null, null, null);
    const store = createWebhookStore({ kind: "sqlite", sqlite: db });
    await store.open();
    const both = {
      accountId: "acct_a",
      jobId: "job_a",
      type: "job.failed",
      url: "https://é.example/'x\"",
    };
    const a = { ...both, webhookId: "evt_a", body: "{\"a\":'ü'}", state: "pending", dueAt: 7 };
    const b = {
      ...both,
      webhookId: "evt_b",
      keyId: "key_a",
      body: "",
      state: "failed",
      expiresAt: 8,
    };
    const numbers = { createdAt: 5, attempts: 2, giveUpAt: 9 };
    const ended = { lastAttemptAt: 6, lastStatus: 500, lastError: "status" };
    expect(await store.find("evt_a")).toStrictEqual({ ...a, ...numbers });
    expect(await store.find("evt_b")).toStrictEqual({ ...b, ...numbers, ...ended });
    expect((await store.nextDue("", 7))?.webhookId).toBe("evt_a");
    const previous = { secret: "before", until: 4 };
    const current = { current: "now", createdAt: 3 };
    expect(await store.findSecrets("acct_a")).toStrictEqual({
      ...{ accountId: "acct_a", previous, operation: "op" },
      ...current,
    });
    expect(await store.findSecrets("acct_b")).toStrictEqual({ accountId: "acct_b", ...current });
    const named = db.all(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'media%'",
    );
    expect(named.map(({ name }) => name)).toEqual(["media_webhook", "media_webhook_secret"]);
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
    await createWebhookStore({ kind: "sqlite", sqlite: db }).open();
    const plan = db
      .all(`EXPLAIN QUERY PLAN SELECT * FROM media_webhook ${where}`)
      .map(({ detail }) => String(detail));
    expect(plan.filter((step) => /^SCAN|TEMP B-TREE/.test(step))).toEqual([]);
  });
});
