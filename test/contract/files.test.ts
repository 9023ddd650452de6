import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { openSqlite, type SqliteDatabase } from "#kit/sqlite.ts";
import { createSqliteQuota } from "../../services/media/files/quota-sqlite.ts";
import { createSqliteFileStore } from "../../services/media/files/store-sqlite.ts";
import { quotaContract } from "./files.quota.suite.ts";
import { fileStoreContract } from "./files.suite.ts";

const databases: SqliteDatabase[] = [];
const folders: string[] = [];
afterEach(async () => {
  for (const db of databases.splice(0)) db[Symbol.dispose]();
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

/** Two connections to one new file. */
async function connectTwice(): Promise<[SqliteDatabase, SqliteDatabase]> {
  const folder = await mkdtemp(join(tmpdir(), "genmesh-files-"));
  folders.push(folder);
  const connect = () => {
    const db = openSqlite(join(folder, "genmesh.db"));
    databases.push(db);
    return db;
  };
  return [connect(), connect()];
}

describe("account files in SQLite", () => {
  fileStoreContract(async () => {
    const [one, two] = await connectTwice();
    return [createSqliteFileStore(one), createSqliteFileStore(two)];
  });

  test.each([
    [
      "what is due",
      "SELECT * FROM media_file WHERE state IN ('storing', 'deleted') AND due_at <= 1",
    ],
    ["a listing", "SELECT * FROM media_file WHERE account_id = 'a' AND state = 'ready'"],
    ["bytes", "SELECT 1 FROM media_file WHERE storage_id = 's' AND state <> 'gone'"],
    ["pins of a file", "SELECT job_id FROM media_file_pin WHERE file_id = 'f'"],
  ])("%s is found by an index", async (_, sql) => {
    const [db] = await connectTwice();
    createSqliteFileStore(db);
    const plan = db.all(`EXPLAIN QUERY PLAN ${sql}`).map(({ detail }) => String(detail));
    expect(plan.filter((step) => step.startsWith("SCAN"))).toEqual([]);
  });
});

describe("the quota in SQLite", () => {
  quotaContract(async () => {
    const [one, two] = await connectTwice();
    return [createSqliteQuota(one), createSqliteQuota(two)];
  });
});
