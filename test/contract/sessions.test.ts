import { describe } from "vitest";
import { createSqliteSessionStore } from "../../services/auth/session-store-sqlite.ts";
import { sqliteFiles } from "../support/sqlite-files.ts";
import { sessionStoreContract } from "./sessions.suite.ts";

const { connectTwice } = sqliteFiles();

describe("sessions in SQLite", () => {
  sessionStoreContract(async () => {
    const stores = await connectTwice((db) => createSqliteSessionStore(db));
    for (const store of stores) await store.open();
    return stores;
  });
});
