import { describe, expect, test } from "vitest";
import { createStoredKeyStore } from "../../services/catalog/stored-key-store-documents.ts";
import { sqliteFiles } from "../support/sqlite-files.ts";
import { createPlanWatch } from "../support/sqlite-plans.ts";
import { storedKeyContract } from "./stored-keys.suite.ts";

const { connectTwice } = sqliteFiles();

describe("stored keys in SQLite", () => {
  const plans = createPlanWatch();
  storedKeyContract(async () => {
    const stores = await connectTwice((db) =>
      createStoredKeyStore({ kind: "sqlite", sqlite: plans.watched(db) }),
    );
    for (const store of stores) await store.open();
    return stores;
  });

  // It looks at what the tests above have sought.
  test("every search is by an index", () => {
    expect(plans.seen.size).toBeGreaterThan(2);
    expect(plans.scans).toEqual([]);
  });
});
