import { describe, expect, test } from "vitest";
import { createSqliteQuota } from "../../services/media/files/quota-sqlite.ts";
import { createSqliteFileStore } from "../../services/media/files/store-sqlite.ts";
import { sqliteFiles } from "../support/sqlite-files.ts";
import { quotaContract } from "./files.quota.suite.ts";
import { fileStoreContract } from "./files.suite.ts";

const { newFile, connect, connectTwice } = sqliteFiles();

describe("account files in SQLite", () => {
  fileStoreContract(() => connectTwice((db) => createSqliteFileStore(db)));

  test.each([
    [
      "what is due",
      "SELECT * FROM media_file WHERE state IN ('storing', 'deleted') AND due_at <= 1",
    ],
    ["a listing", "SELECT * FROM media_file WHERE account_id = 'a' AND state = 'ready'"],
    ["bytes", "SELECT 1 FROM media_file WHERE storage_id = 's' AND state <> 'gone'"],
    ["pins of a file", "SELECT job_id FROM media_file_pin WHERE file_id = 'f'"],
  ])("%s is found by an index", async (_, sql) => {
    const db = connect(await newFile());
    createSqliteFileStore(db);
    const plan = db.all(`EXPLAIN QUERY PLAN ${sql}`).map(({ detail }) => String(detail));
    expect(plan.filter((step) => step.startsWith("SCAN"))).toEqual([]);
  });
});

describe("the quota in SQLite", () => {
  quotaContract(() => connectTwice((db) => createSqliteQuota(db)));
});
