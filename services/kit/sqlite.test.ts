import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { openSqlite } from "./sqlite.ts";

const folder = mkdtempSync(join(tmpdir(), "genmesh-sqlite-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("the SQLite file", () => {
  test("transactions of one turn share a commit, and one that throws is undone alone", async () => {
    using db = openSqlite(join(folder, "together.sqlite"));
    db.migrate("test", ["CREATE TABLE t (n INTEGER NOT NULL)"]);
    const insert = (n: number, then?: () => void) =>
      db.write((tx) => {
        tx.run("INSERT INTO t VALUES (?)", n);
        then?.();
        return n;
      });
    const fails = () => {
      throw new Error("no");
    };
    const outcomes = await Promise.allSettled([insert(1), insert(2, fails), insert(3)]);
    expect(outcomes.map((one) => one.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(db.all("SELECT n FROM t ORDER BY n").map((row) => row.n)).toEqual([1n, 3n]);
  });

  test("nothing is answered before it is committed", async () => {
    const file = join(folder, "durable.sqlite");
    using db = openSqlite(file);
    using other = openSqlite(file);
    db.migrate("test", ["CREATE TABLE t (n INTEGER NOT NULL)"]);
    await db.write((tx) => tx.run("INSERT INTO t VALUES (1)"));
    expect(other.get("SELECT count(*) AS n FROM t")?.n).toBe(1n);
  });

  test("integers past 2^53 survive", async () => {
    using db = openSqlite(":memory:");
    db.migrate("test", ["CREATE TABLE t (n INTEGER NOT NULL)"]);
    await db.write((tx) => tx.run("INSERT INTO t VALUES (?)", 2n ** 62n + 1n));
    expect(db.get("SELECT n FROM t")?.n).toBe(2n ** 62n + 1n);
  });

  test("a migration runs each step once, and refuses tables of a newer version", () => {
    using db = openSqlite(":memory:");
    const first = "CREATE TABLE t (n INTEGER)";
    db.migrate("test", [first]);
    db.migrate("test", [first, "ALTER TABLE t ADD COLUMN m INTEGER"]);
    db.migrate("test", [first, "ALTER TABLE t ADD COLUMN m INTEGER"]);
    expect(() => db.migrate("test", [first])).toThrow(/newer genmesh/);
  });
});
