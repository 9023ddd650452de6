import { describe, expect, test } from "vitest";
import { createOperatorStore } from "../../services/auth/operator-store-documents.ts";
import { sqliteFiles } from "../support/sqlite-files.ts";
import { createPlanWatch } from "../support/sqlite-plans.ts";
import { operatorStoreContract } from "./operators.suite.ts";

const { connectTwice } = sqliteFiles();

describe("operators in SQLite", () => {
  const plans = createPlanWatch();
  operatorStoreContract(async () => {
    const stores = await connectTwice((db) =>
      createOperatorStore({ kind: "sqlite", sqlite: plans.watched(db) }),
    );
    for (const store of stores) await store.open();
    return stores;
  });

  // It looks at what the tests above have sought.
  test("every search is by an index", () => {
    expect(plans.seen.size).toBeGreaterThan(1);
    expect(plans.scans).toEqual([]);
  });
});
