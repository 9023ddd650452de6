import { describe, expect, test } from "vitest";
import { createSqliteAuthStore } from "../../services/auth/store-sqlite.ts";
import { sqliteFiles } from "../support/sqlite-files.ts";
import { accountChangeContract } from "./keys.accounts.suite.ts";
import { operatorStoreContract } from "./keys.closing.suite.ts";
import { managedKeyContract } from "./keys.managed.suite.ts";
import { keyStoreContract } from "./keys.suite.ts";

const { newFile, connect, connectTwice } = sqliteFiles();

describe("keys in SQLite", () => {
  const open = async () => {
    const stores = await connectTwice((db) => createSqliteAuthStore(db));
    for (const store of stores) await store.open();
    return stores;
  };
  keyStoreContract(open);
  managedKeyContract(open);
  operatorStoreContract(open);
  accountChangeContract(open);

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
