import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
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

  test("one that throws after it changed something takes nothing of the others with it", async () => {
    using db = openSqlite(":memory:");
    db.migrate("test", ["CREATE TABLE t (n INTEGER PRIMARY KEY)"]);
    const runs: number[] = [];
    const insert = (n: number, fault?: "before" | "after") =>
      db.write((tx) => {
        runs.push(n);
        if (fault === "before") throw new Error(`${n}`);
        tx.run("INSERT INTO t VALUES (?)", n);
        if (fault === "after") throw new Error(`${n}`);
        return tx.get("SELECT count(*) AS n FROM t")?.n;
      });
    const outcomes = await Promise.allSettled([
      insert(1),
      insert(2, "before"),
      insert(3, "after"),
      insert(4),
      insert(4),
      insert(5, "after"),
    ]);
    const seen = outcomes.map((one) => (one.status === "fulfilled" ? one.value : "failed"));
    expect(seen).toEqual([1n, "failed", "failed", 2n, "failed", "failed"]);
    expect(db.all("SELECT n FROM t ORDER BY n").map((row) => row.n)).toEqual([1n, 4n]);
    // A transaction that failed by itself is not tried again.
    expect(runs.filter((n) => n === 3 || n === 5)).toEqual([3, 5]);
  });

  test("a lazy one shares the next commit, or is committed soon", async () => {
    const file = join(folder, "lazy.sqlite");
    using db = openSqlite(file);
    using other = openSqlite(file);
    db.migrate("test", ["CREATE TABLE t (n INTEGER NOT NULL)"]);
    const order: string[] = [];
    const insert = (name: string, lazy: boolean) =>
      db
        .write((tx) => tx.run("INSERT INTO t VALUES (1)"), { lazy })
        .then(() => order.push(`${name} ${other.get("SELECT count(*) AS n FROM t")?.n}`));
    const first = insert("lazy", true);
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    expect(order).toEqual([]);
    await Promise.all([first, insert("prompt", false)]);
    expect(order).toEqual(["lazy 2", "prompt 2"]);
    await insert("alone", true);
    expect(order.at(-1)).toBe("alone 3");
  });

  test("one that fails undoes the others, which forget what they knew and run again without it", async () => {
    using db = openSqlite(":memory:");
    db.migrate("test", ["CREATE TABLE t (n INTEGER PRIMARY KEY)"]);
    let forgot = 0;
    const forget = () => {
      forgot++;
    };
    const insert = (n: number, fails = false) =>
      db.write((tx) => {
        tx.run("INSERT INTO t VALUES (?)", n);
        tx.onUndo(forget);
        if (fails) throw new Error("no");
      });
    const outcomes = await Promise.allSettled([insert(1), insert(2, true), insert(3)]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    const rows = db.all("SELECT n FROM t ORDER BY n").map(({ n }) => n);
    expect({ rows, forgot }).toEqual({ rows: [1n, 3n], forgot: 1 });
  });

  test("a transaction knows whether another connection changed the file since the last one", async () => {
    const file = join(folder, "others.sqlite");
    using db = openSqlite(file);
    using other = openSqlite(file);
    db.migrate("test", ["CREATE TABLE t (n INTEGER NOT NULL)"]);
    const versionAfterInsert = () =>
      db.write((tx) => {
        tx.run("INSERT INTO t VALUES (1)");
        return tx.othersVersion;
      });
    const before = await versionAfterInsert();
    expect(await versionAfterInsert()).toBe(before);
    await other.write((tx) => tx.run("INSERT INTO t VALUES (2)"));
    expect(await versionAfterInsert()).not.toBe(before);
  });

  test("what waits is committed when the file is closed", async () => {
    const file = join(folder, "closed.sqlite");
    const db = openSqlite(file);
    db.migrate("test", ["CREATE TABLE t (n INTEGER NOT NULL)"]);
    const writes = Array.from({ length: 600 }, (_, n) =>
      db.write((tx) => tx.run("INSERT INTO t VALUES (?)", n), { lazy: n % 2 === 0 }),
    );
    db[Symbol.dispose]();
    await Promise.all(writes);
    using again = openSqlite(file);
    expect(again.get("SELECT count(*) AS n FROM t")?.n).toBe(600n);
  });

  test("a closed file refuses what comes late", async () => {
    const db = openSqlite(":memory:");
    db.migrate("test", ["CREATE TABLE t (n INTEGER NOT NULL)"]);
    db[Symbol.dispose]();
    const late = db.write((tx) => tx.run("INSERT INTO t VALUES (1)"));
    await expect(late).rejects.toMatchObject({ reason: ErrorReason.SERVICE_UNAVAILABLE });
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
