import { describe, expect, test } from "vitest";
import {
  createSessionStore,
  sessionComponent,
} from "../../services/auth/session-store-documents.ts";
import { sqliteFiles } from "../support/sqlite-files.ts";
import { createPlanWatch } from "../support/sqlite-plans.ts";
import { sessionStoreContract } from "./sessions.suite.ts";

const { newFile, connect, connectTwice } = sqliteFiles();

describe("sessions in SQLite", () => {
  const plans = createPlanWatch();
  sessionStoreContract(async () => {
    const stores = await connectTwice((db) =>
      createSessionStore({ kind: "sqlite", sqlite: plans.watched(db) }),
    );
    for (const store of stores) await store.open();
    return stores;
  });

  // It looks at what the tests above have sought.
  test("every search is by an index", () => {
    expect(plans.seen.size).toBeGreaterThan(5);
    expect(plans.scans).toEqual([]);
  });

  test("rows of an earlier version become documents, and are nowhere else", async () => {
    const db = connect(await newFile());
    db.migrate("session", sessionComponent.tables.slice(0, 1));
    const identity = { issuer: "https://é.example", subject: "'\"", confirmed: false };
    const [one, two] = [Buffer.alloc(32, 0xa1), Buffer.alloc(32, 0xb2)];
    const secret = Buffer.alloc(32, 0xc3);
    const insert = "INSERT INTO auth_session VALUES (?, ?, ?, ?, ?, 1, 2, 3)";
    db.run(insert, one, "key_a", "key_a", secret, null);
    db.run(insert, two, "operator", null, secret, JSON.stringify(identity));
    const store = createSessionStore({ kind: "sqlite", sqlite: db });
    await store.open();
    const both = { secretSha256: secret, createdAtMs: 1, seenAtMs: 2, endsAtMs: 3 };
    expect(await store.find(one)).toStrictEqual({ sha256: one, keyId: "key_a", ...both });
    expect(await store.find(two)).toStrictEqual({ sha256: two, identity, ...both });
    await store.create({ ...both, sha256: secret, createdAtMs: 3, endsAtMs: 9 }, 5);
    expect(await store.find(one)).toBeUndefined();
    const tables = db.all("SELECT name FROM sqlite_schema WHERE type = 'table'");
    expect(tables.map(({ name }) => name)).toEqual(["schema_version", "auth_session"]);
  });
});
