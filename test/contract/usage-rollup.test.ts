import { describe, expect, test } from "vitest";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { createLedgerStore } from "../../services/billing/index.ts";
import { createSqliteUsage } from "../../services/billing/usage/store-sqlite-usage.ts";
import type { LineQuery } from "../../services/billing/usage/usage-store.ts";
import { sqliteFiles } from "../support/sqlite-files.ts";
import { billingWorld } from "./ledger.world.ts";
import { audit, checkAll } from "./usage-rollup.checks.ts";
import { usageRollupContract } from "./usage-rollup.suite.ts";
import { accountId, randomRequests, seeded, type World } from "./usage-rollup.world.ts";

const { newFile, connect } = sqliteFiles();

describe("on SQLite", () => {
  usageRollupContract(async () => {
    const file = await newFile();
    return () => ({ kind: "sqlite", sqlite: connect(file) });
  });

  test("the totals of keys are made of the rollup of an earlier release", async () => {
    const file = await newFile();
    const spent = await (async () => {
      await using world = await billingWorld({ kind: "sqlite", sqlite: connect(file) });
      return await countedRequests(world);
    })();
    const earlier = connect(file);
    earlier.run("DROP TABLE ledger_key_total");
    earlier.run("DROP TABLE ledger_served");
    earlier.run("ALTER TABLE ledger_usage_cursor DROP COLUMN served_n");
    earlier.run("UPDATE schema_version SET version = 1 WHERE component = 'ledger_usage'");
    await using world = await billingWorld({ kind: "sqlite", sqlite: connect(file) });
    spent.push(...(await randomRequests(world, seeded(18), 10)));
    const keyIds = ["key_a", "key_b", "key_c"];
    for (const { keyId, spent: told } of (await world.billing.getKeyUsage({ accountId, keyIds }))
      .keys) {
      const own = spent.filter((one) => one.unit === Unit.USD_MICROS && one.keyId === keyId);
      expect(told, keyId).toBe(own.reduce((all, { amount }) => all + amount, 0n));
    }
    expect(await audit(world)).toEqual([]);
  });

  test("the rollup by upstream is made of the journal of an earlier release", async () => {
    const file = await newFile();
    const spent = await (async () => {
      await using world = await billingWorld({ kind: "sqlite", sqlite: connect(file) });
      return await countedRequests(world);
    })();
    const earlier = connect(file);
    earlier.run("DROP TABLE ledger_served");
    earlier.run("ALTER TABLE ledger_usage_cursor DROP COLUMN served_n");
    earlier.run("UPDATE schema_version SET version = 2 WHERE component = 'ledger_usage'");
    await using world = await billingWorld({ kind: "sqlite", sqlite: connect(file) });
    spent.push(...(await randomRequests(world, seeded(18), 10)));
    await checkAll(world, spent);
  });

  test("every filter of lines and usage goes along its index, however many there are", async () => {
    const sqlite = connect(await newFile());
    const taken: string[] = [];
    const plans: string[] = [];
    const usage = createSqliteUsage({
      ...sqlite,
      all(sql, ...values) {
        const all = sqlite.all(`EXPLAIN QUERY PLAN ${sql}`, ...values);
        const [plan] = all;
        plans.push(...all.map(({ detail }) => String(detail)));
        taken.push(String(plan?.detail).replace(/^SEARCH \w+ USING (INDEX )?/, ""));
        return sqlite.all(sql, ...values);
      },
    });
    await createLedgerStore({ kind: "sqlite", sqlite }).open();
    await usage.open();
    const place = { at: 1, unit: "credits", n: 1 } as const;
    const filters = [
      [{}, "PRIMARY KEY (account_id=?"],
      [{ keyId: "key_a" }, "ledger_line_key (account_id=? AND key_id=?"],
      [{ keyId: "key_a", model: "m" }, "ledger_line_key (account_id=? AND key_id=?"],
      [{ model: "m" }, "ledger_line_model (account_id=? AND model=?"],
      [{ status: "failed" }, "ledger_line_status (account_id=? AND status=?"],
      [{ kinds: ["grant"] }, "ledger_line_kind (account_id=? AND kind=?"],
    ] as const satisfies [Partial<LineQuery>, string][];
    for (const [filter, index] of filters) {
      const range = { from: place, until: { ...place, at: 9 } };
      for (const beyond of [{}, { after: place }, { before: place }, range]) {
        taken.length = 0;
        await usage.lines({ accountId, limit: 5, ...filter, ...beyond });
        const ends = Object.keys(beyond).length;
        const bound = new RegExp(
          `(\\?| AND \\(at,unit,n\\)[<>]\\(\\?,\\?,\\?\\)){${Math.max(1, ends)}}\\)$`,
        );
        expect(taken).toEqual([expect.stringMatching(bound)]);
        expect(taken[0]).toContain(index);
      }
    }
    // Of all accounts.
    for (const [filter, index] of [
      [{}, "ledger_line_shared_all"],
      [{ model: "m" }, "ledger_line_shared_all"],
      [{ status: "failed" }, "ledger_line_shared_status (status=?"],
      [{ kinds: ["image"] }, "ledger_line_shared_kind (kind=?"],
    ] as const satisfies [Partial<LineQuery>, string][]) {
      for (const beyond of [{}, { after: { ...place, accountId } }]) {
        taken.length = 0;
        plans.length = 0;
        await usage.lines({ accountId: undefined, limit: 5, ...filter, ...beyond });
        expect(taken).toEqual([expect.stringContaining(index)]);
        expect(plans.join()).not.toContain("TEMP B-TREE");
      }
    }
    taken.length = 0;
    await usage.findAll("resp_1");
    expect(taken).toEqual([
      "ledger_line_public (public_id=?)",
      "ledger_line_request (request_id=?)",
    ]);
    taken.length = 0;
    await usage.find(accountId, undefined, "resp_1");
    const day = { from: 0, until: 86_400, width: 3_600, byKey: true, byModel: true, byKind: true };
    await usage.groups({ accountId, ...day });
    await usage.groups({ accountId, ...day, keyIds: ["key_a"] });
    await usage.keyTotals({ accountId, unit: "credits" }, ["key_a"]);
    const hour = { ...day, until: 3_600, byUpstream: true };
    await usage.served({ ...hour, accountId });
    await usage.served({ ...hour, accountId, keyIds: ["key_a"] });
    await usage.served({ ...hour, accountId: undefined });
    expect(taken).toEqual([
      "ledger_line_public (public_id=? AND account_id=?)",
      "ledger_line_request (request_id=? AND account_id=?)",
      "PRIMARY KEY (account_id=? AND hour>? AND hour<?)",
      "ledger_usage_key (account_id=? AND key_id=? AND hour>? AND hour<?)",
      "PRIMARY KEY (account_id=? AND unit=? AND key_id=?)",
      "PRIMARY KEY (account_id=? AND hour>? AND hour<?)",
      "ledger_served_key (account_id=? AND key_id=? AND hour>? AND hour<?)",
      "ledger_served_hour (hour>? AND hour<?)",
    ]);
  });

  test.for<[what: string, sql: string]>([
    ["a row", "UPDATE ledger_usage SET spent = spent + 1"],
    ["a row by upstream", "UPDATE ledger_served SET tool_calls = tool_calls + 1"],
    ["a key's total", "UPDATE ledger_key_total SET spent = spent + 1"],
    ["a key's total that is gone", "DELETE FROM ledger_key_total"],
  ])("the audit finds %s that its entries do not make", async ([, sql]) => {
    const database = connect(await newFile());
    await using world = await billingWorld({ kind: "sqlite", sqlite: database });
    await randomRequests(world, seeded(19), 20);
    expect(await audit(world)).toEqual([]);
    expect(database.run(sql.replace("", ""))).toBeGreaterThan(0);
    const found = await audit(world);
    expect(found.length).toBeGreaterThan(0);
    expect(new Set(found.map(({ field }) => field))).toEqual(new Set(["usage"]));
  });
});

/** Some requests, in the rollup of their release. */
async function countedRequests(world: World) {
  const requests = await randomRequests(world, seeded(17), 40);
  await world.billing.getUsage({
    ...{ accountId, startSeconds: 0n, widthSeconds: 3_600, buckets: 1 },
  });
  return requests;
}
