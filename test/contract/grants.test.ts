import { describe, expect, test } from "vitest";
import { sqliteFiles } from "../support/sqlite-files.ts";
import { createPlanWatch } from "../support/sqlite-plans.ts";
import { monthlyGrantContract } from "./grants.suite.ts";

const { newFile, connect } = sqliteFiles();
const plans = createPlanWatch();

describe("on SQLite", () => {
  monthlyGrantContract(async () => {
    const file = await newFile();
    return () => ({ kind: "sqlite", sqlite: plans.watched(connect(file)) });
  });

  // It looks at what the tests above have sought.
  test("every search is by an index", () => {
    const own = [...plans.seen].filter((sql) => sql.includes("ledger_monthly_grant"));
    expect(own.length).toBeGreaterThan(2);
    expect(plans.scans.filter((scan) => scan.includes("ledger_monthly_grant"))).toEqual([]);
  });
});
