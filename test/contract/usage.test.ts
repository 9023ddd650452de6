import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { openSqlite, type SqliteDatabase } from "#kit/sqlite.ts";
import { createSqliteUsageStore } from "../../services/text/store-sqlite.ts";
import { usageStoreContract } from "./usage.suite.ts";

const open: SqliteDatabase[] = [];
const folders: string[] = [];
afterEach(async () => {
  for (const db of open.splice(0)) db[Symbol.dispose]();
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

async function newFile(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "genmesh-usage-"));
  folders.push(folder);
  return join(folder, "genmesh.db");
}

function connect(file: string): SqliteDatabase {
  const db = openSqlite(file);
  open.push(db);
  return db;
}

describe("usage in SQLite", () => {
  usageStoreContract(async () => {
    const file = await newFile();
    const stores = [
      createSqliteUsageStore(connect(file)),
      createSqliteUsageStore(connect(file)),
    ] as const;
    for (const store of stores) await store.prepare();
    return [...stores];
  });

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
