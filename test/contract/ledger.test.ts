import { describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import type { SqliteDatabase } from "#kit/store/sqlite.ts";
import { createSqliteLedger } from "../../services/billing/ledger/store-sqlite.ts";
import { createSqliteUsage } from "../../services/billing/usage/store-sqlite-usage.ts";
import { failReads, sqliteFiles } from "../support/sqlite-files.ts";
import { ledgerStoreContract } from "./ledger.suite.ts";

const { newFile, connect, connectTwice } = sqliteFiles();

describe("the ledger in SQLite", () => {
  ledgerStoreContract(async () => {
    const stores = await connectTwice((db) => createSqliteLedger(db));
    for (const store of stores) await store.open();
    return stores;
  });
});

describe("SQLite alone", () => {
  test("due holds are found by an index and in its order", async () => {
    const db = connect(await newFile());
    await createSqliteLedger(db).open();
    const seen: string[] = [];
    const watched = {
      ...db,
      all: (sql: string, ...values: never[]) => {
        const plan = db.all(`EXPLAIN QUERY PLAN ${sql}`, ...values);
        seen.push(...plan.map((row) => String(row.detail)));
        return db.all(sql, ...values);
      },
    };
    await createSqliteLedger(watched as SqliteDatabase).dueHolds({ now: 1, limit: 9 });
    expect(seen[0]).toMatch(/^SEARCH h USING (COVERING )?INDEX ledger_hold_due \(/);
    expect(seen.filter((step) => /^SCAN|TEMP B-TREE/.test(step))).toEqual([]);
  });

  test("the journal takes no change and no deletion", async () => {
    const db = connect(await newFile());
    const store = createSqliteLedger(db);
    await store.open();
    const wallet = { accountId: "acct_a", unit: "credits" } as const;
    await store.apply(wallet, [{ kind: "grant", grantId: "g", amount: 5n }], 1);
    expect(() => db.run("UPDATE ledger_newest SET amount = 6")).toThrow(/append-only/);
    expect(() => db.run("DELETE FROM ledger_newest")).toThrow(/append-only/);
    expect(await store.entries(wallet, { limit: 9 })).toMatchObject([{ amount: 5n }]);
    expect(() => db.run("UPDATE ledger_entry SET amount = 6")).toThrow(/append-only/);
    expect(() => db.run("DELETE FROM ledger_entry")).toThrow(/append-only/);
  });

  test("a database that is locked for too long is SERVICE_UNAVAILABLE, and nothing was done", async () => {
    const file = await newFile();
    const db = connect(file);
    const store = createSqliteLedger(db);
    await store.open();
    const blocker = connect(file);
    // The usual pause would block this thread for five seconds.
    db.get("PRAGMA busy_timeout = 1");
    const wallet = { accountId: "acct_a", unit: "credits" } as const;
    const grant = [{ kind: "grant", grantId: "g", amount: 5n }] as const;
    blocker.run("BEGIN IMMEDIATE");
    const refused = { reason: ErrorReason.SERVICE_UNAVAILABLE };
    await expect(store.apply(wallet, grant, 1)).rejects.toMatchObject(refused);
    blocker.run("ROLLBACK");
    expect(await store.apply(wallet, grant, 1)).toMatchObject([{ replayed: false }]);
  });

  test.each([
    ["a disk that fails", 10, { reason: ErrorReason.SERVICE_UNAVAILABLE }],
    ["a mistake in a statement", 1, { errcode: 1 }],
  ])("%s is told apart in reads of the ledger and of usage", async (_, errcode, error) => {
    const file = connect(await newFile());
    const [ledger, usage] = [createSqliteLedger(file), createSqliteUsage(file)];
    await ledger.open();
    await usage.open();
    const wallet = { accountId: "acct_a", unit: "credits" } as const;
    await ledger.apply(wallet, [{ kind: "grant", grantId: "g", amount: 5n }], 1);
    const one = await first(ledger.snapshots("acct_a"));
    failReads(errcode);
    await expect(ledger.wallet(wallet)).rejects.toMatchObject(error);
    await expect(first(ledger.snapshots("acct_a"))).rejects.toMatchObject(error);
    await expect(one?.entry(1)).rejects.toMatchObject(error);
    await expect(usage.cursor(wallet)).rejects.toMatchObject(error);
    await expect(first(usage.rows(wallet))).rejects.toMatchObject(error);
  });
});

async function first<T>(all: AsyncIterable<T>): Promise<T | undefined> {
  for await (const one of all) return one;
  return undefined;
}
