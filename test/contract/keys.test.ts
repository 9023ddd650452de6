import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { openSqlite, type SqliteDatabase } from "#kit/sqlite.ts";
import { createSqliteAuthStore } from "../../services/auth/store-sqlite.ts";
import { keyStoreContract } from "./keys.suite.ts";

const open: SqliteDatabase[] = [];
const folders: string[] = [];
afterEach(async () => {
  for (const db of open.splice(0)) db[Symbol.dispose]();
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

async function newFile(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "genmesh-keys-"));
  folders.push(folder);
  return join(folder, "genmesh.db");
}

function connect(file: string): SqliteDatabase {
  const db = openSqlite(file);
  open.push(db);
  return db;
}

describe("keys in SQLite", () => {
  keyStoreContract(async () => {
    const file = await newFile();
    const stores = [
      createSqliteAuthStore(connect(file)),
      createSqliteAuthStore(connect(file)),
    ] as const;
    for (const store of stores) await store.open();
    return [...stores];
  });

  test("a key is found by an index, never by a scan", async () => {
    const db = connect(await newFile());
    await createSqliteAuthStore(db).open();
    const plan = db
      .all(
        "EXPLAIN QUERY PLAN SELECT 1 FROM auth_key k WHERE k.secret_sha256 = ? OR k.former_sha256 = ?",
        new Uint8Array(32),
        new Uint8Array(32),
      )
      .map((row) => String(row.detail));
    expect(plan.filter((step) => /^SEARCH k USING (COVERING )?INDEX/.test(step))).toHaveLength(2);
    expect(plan.filter((step) => step.startsWith("SCAN"))).toEqual([]);
  });
});
