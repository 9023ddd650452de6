import { describe, expect, test } from "vitest";
import { createHistoryStore } from "../../services/upstreams/health/history-store.ts";
import { sqliteFiles } from "../support/sqlite-files.ts";
import { createPlanWatch } from "../support/sqlite-plans.ts";
import { upstreamHistoryContract } from "./upstream-history.suite.ts";

const { connectTwice } = sqliteFiles();

describe("the hours of upstreams in SQLite", () => {
  const plans = createPlanWatch();
  upstreamHistoryContract(async () => {
    const stores = await connectTwice((db) =>
      createHistoryStore({ kind: "sqlite", sqlite: plans.watched(db) }),
    );
    for (const store of stores) await store.open();
    return stores;
  });

  // It looks at what the tests above have sought.
  test("every search is by an index", () => {
    expect(plans.seen.size).toBeGreaterThan(3);
    expect(plans.scans).toEqual([]);
  });
});
