import { describe, expect, test } from "vitest";
import { createVersionStore } from "../../services/catalog/version-store-documents.ts";
import { sqliteFiles } from "../support/sqlite-files.ts";
import { createPlanWatch } from "../support/sqlite-plans.ts";
import { version, versionStoreContract } from "./catalog-versions.suite.ts";

const { newFile, connect, connectTwice } = sqliteFiles();

describe("versions of the catalog in SQLite", () => {
  const plans = createPlanWatch();
  versionStoreContract(async () => {
    const stores = await connectTwice((db) =>
      createVersionStore({ kind: "sqlite", sqlite: plans.watched(db) }),
    );
    for (const store of stores) await store.open();
    return stores;
  });

  // It looks at what the tests above have sought.
  test("every search is by an index", () => {
    expect(plans.seen.size).toBeGreaterThan(3);
    expect(plans.scans).toEqual([]);
  });

  test("a slip of the hand changes no version, and removes none", async () => {
    const db = connect(await newFile());
    const store = createVersionStore({ kind: "sqlite", sqlite: db });
    await store.open();
    await store.add(version(1));
    expect(() => db.run("DELETE FROM catalog_version")).toThrow("append-only");
    expect(() => db.run("UPDATE catalog_version SET text = ''")).toThrow("never change");
  });
});
