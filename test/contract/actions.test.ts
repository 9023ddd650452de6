import { afterAll, describe } from "vitest";
import { openSqlite } from "#kit/store/sqlite.ts";
import { createSqliteActionStore } from "../../services/auth/action-store-sqlite.ts";
import { actionStoreContract } from "./actions.suite.ts";

describe("the audit log in SQLite", () => {
  const opened: Disposable[] = [];
  afterAll(() => opened.forEach((db) => void db[Symbol.dispose]()));
  actionStoreContract(async () => {
    const db = openSqlite(":memory:");
    opened.push(db);
    const stores = [createSqliteActionStore(db), createSqliteActionStore(db)] as const;
    for (const store of stores) await store.open();
    return [...stores];
  });
});
