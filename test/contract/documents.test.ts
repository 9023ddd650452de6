import { describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { createSqliteDocuments, migrateSqliteDocuments } from "#kit/documents/sqlite.ts";
import { failRead, failReads, sqliteFiles } from "../support/sqlite-files.ts";
import { createPlanWatch } from "../support/sqlite-plans.ts";
import { documentsContract } from "./documents.suite.ts";
import { type ThingSchema, thing, thingKinds, things } from "./documents.world.ts";

const { newFile, connect, connectTwice } = sqliteFiles();

describe("documents in SQLite", () => {
  const plans = createPlanWatch();
  documentsContract((kind) =>
    connectTwice((db) => {
      migrateSqliteDocuments(db, things);
      return createSqliteDocuments(plans.watched(db), kind);
    }),
  );

  // Checks the searches of the tests above.
  test("every search is by an index", () => {
    expect(plans.seen.size).toBeGreaterThan(20);
    expect(plans.scans).toEqual([]);
  });

  test.each([
    ["a disk that fails", 10, { reason: ErrorReason.SERVICE_UNAVAILABLE }],
    ["a mistake in a statement", 1, { errcode: 1 }],
  ])("%s is told apart", async (_, errcode, error) => {
    const db = connect(await newFile());
    migrateSqliteDocuments(db, things);
    const [kind] = thingKinds as [ThingSchema];
    const get = () => failRead(errcode);
    const write: typeof db.write = (work) => db.write((tx) => work({ ...tx, get }));
    const store = createSqliteDocuments({ ...db, write }, kind);
    await expect(store.change("a", (one) => one)).rejects.toMatchObject(error);
    failReads(errcode);
    await expect(store.find("a")).rejects.toMatchObject(error);
    await expect(store.seek("over", {})).rejects.toMatchObject(error);
  });

  test("an index that a later version adds is made for the documents that are there", async () => {
    const db = connect(await newFile());
    const [kind] = thingKinds;
    if (!kind) throw new Error("no kind");
    migrateSqliteDocuments(db, { ...things, kinds: [{ ...kind, indexes: {} }] });
    const store = createSqliteDocuments(db, kind);
    await store.insert(thing("a", { dueAt: 4 }));
    await expect(store.seek("over", {})).rejects.toThrow("no such index");
    migrateSqliteDocuments(db, things);
    expect(await store.seek("over", {})).toEqual([thing("a", { dueAt: 4 })]);
  });
});
