import { describe, expect, test } from "vitest";
import { auditComponent, createActionStore } from "../../services/auth/action-store-documents.ts";
import { sqliteFiles } from "../support/sqlite-files.ts";
import { createPlanWatch } from "../support/sqlite-plans.ts";
import { actionStoreContract } from "./actions.suite.ts";

const { newFile, connect, connectTwice } = sqliteFiles();

describe("the audit log in SQLite", () => {
  const plans = createPlanWatch();
  actionStoreContract(async () => {
    const stores = await connectTwice((db) =>
      createActionStore({ kind: "sqlite", sqlite: plans.watched(db) }),
    );
    for (const store of stores) await store.open();
    return stores;
  });

  // It looks at what the tests above have sought.
  test("every search is by an index", () => {
    expect(plans.seen.size).toBeGreaterThan(3);
    expect(plans.scans).toEqual([]);
  });

  test("lines of an earlier version become documents, end once, and are nowhere else", async () => {
    const db = connect(await newFile());
    db.migrate("audit", auditComponent.tables.slice(0, 1));
    const insert = "INSERT INTO audit_action VALUES (?, ?, 'a.b', ?, 't', ?, ?, ?, ?, ?)";
    db.run(insert, "act_a", "é'\"", "", '{"n":null}', 1, null, null, null);
    db.run(insert, "act_b", "me", "acct_a", "{}", 2, 5, "done", "");
    db.run(insert, "act_c", "me", "acct_a", "{}", 3, 6, "refused", "late");
    const store = createActionStore({ kind: "sqlite", sqlite: db });
    await store.open();
    const both = { action: "a.b", target: "t" };
    const a = { actionId: "act_a", actor: "é'\"", accountId: "", details: '{"n":null}' };
    const of = { actor: "me", accountId: "acct_a", details: "{}", ...both };
    const lines = [
      { actionId: "act_c", beganAtMs: 3, endedAtMs: 6, outcome: "refused", reason: "late", ...of },
      { actionId: "act_b", beganAtMs: 2, endedAtMs: 5, outcome: "done", ...of },
      { ...a, beganAtMs: 1, ...both },
    ];
    expect(await store.list({ accountId: "", limit: 9 })).toStrictEqual(lines);
    const end = { outcome: "done", reason: "", accountId: "", target: "", endedAtMs: 9 } as const;
    await store.end({ ...end, actionId: "act_a" });
    await store.end({ ...end, actionId: "act_c" });
    const [c, , ended] = await store.list({ accountId: "", limit: 9 });
    expect([c, ended]).toMatchObject([lines[0] ?? {}, { outcome: "done", endedAtMs: 9 }]);
    const tables = db.all("SELECT name FROM sqlite_schema WHERE type = 'table'");
    expect(tables.map(({ name }) => name)).toEqual(["schema_version", "audit_action"]);
  });

  test("a slip of the hand changes no line that has ended, and removes none", async () => {
    const db = connect(await newFile());
    const store = createActionStore({ kind: "sqlite", sqlite: db });
    await store.open();
    const ids = { actionId: "act_a", accountId: "", target: "" };
    await store.begin({ ...ids, actor: "me", action: "a.b", details: "{}", beganAtMs: 1 });
    expect(() => db.run("DELETE FROM audit_action")).toThrow("append-only");
    await store.end({ ...ids, outcome: "done", reason: "", endedAtMs: 2 });
    expect(() => db.run("UPDATE audit_action SET doc = '{}'")).toThrow("ends once");
  });
});
