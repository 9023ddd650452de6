import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { openSqlite, type SqliteDatabase } from "#kit/sqlite.ts";
import { jobsSchema, jobsSchemaName } from "../../services/media/jobs/schema-sqlite.ts";
import { createSqliteJobStore } from "../../services/media/jobs/store-sqlite.ts";
import { jobOf, now } from "./jobs.shapes.ts";
import { jobStoreContract } from "./jobs.suite.ts";

const open: SqliteDatabase[] = [];
const folders: string[] = [];
afterEach(async () => {
  for (const db of open.splice(0)) db[Symbol.dispose]();
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

async function newFile(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "genmesh-jobstore-"));
  folders.push(folder);
  return join(folder, "genmesh.db");
}

function connect(file: string): SqliteDatabase {
  const db = openSqlite(file);
  open.push(db);
  return db;
}

describe("jobs in SQLite", () => {
  // Two connections to one file: as if another process had it open too.
  jobStoreContract(async () => {
    const file = await newFile();
    const stores = [
      createSqliteJobStore(connect(file)),
      createSqliteJobStore(connect(file)),
    ] as const;
    for (const store of stores) await store.open();
    return [...stores];
  });

  test("outputs of a file of before are found, and its jobs wait for nothing", async () => {
    const db = connect(await newFile());
    const [before] = jobsSchema;
    db.migrate(jobsSchemaName, [before ?? ""]);
    const spec = JSON.stringify({ ...jobOf("job_a").spec, upstreams: [{ name: "u" }], price: "5" });
    const row = {
      ...{ job_id: "job_a", account_id: "acct_a", key_id: "key_a", fingerprint: "f" },
      ...{ kind: "image", model: "m", upstream: "u", created_at: 1, state: "queued" },
      ...{ pins_held: 0, attempts: 1, fence: 1, lease_until: 0, lease_counted: 1 },
      ...{ upstream_index: 0, progress: 0, publications: 1, deadline: now, events: "[]" },
      outputs: JSON.stringify([{ fileId: "file_a" }, { fileId: "file_b" }]),
    };
    await db.write((tx) => {
      const names = Object.keys(row);
      const values = names.map(() => "?").join(", ");
      tx.run(
        `INSERT INTO media_job (${names.join(", ")}) VALUES (${values})`,
        ...Object.values(row),
      );
      tx.run("INSERT INTO media_job_spec (job_id, spec) VALUES (?, ?)", "job_a", spec);
    });
    const store = createSqliteJobStore(db);
    await store.open();
    expect(await store.find("job_a")).toMatchObject({ sent: false, wait: undefined });
    expect((await store.findByOutput("file_b"))?.jobId).toBe("job_a");
    const claim = { kind: "image", owner: "w", fullUpstreams: [], modelLimits: new Map() } as const;
    expect((await store.claim({ ...claim, now: 2 }))?.jobId).toBe("job_a");
  });

  test("every search goes by an index, in its order", async () => {
    const db = connect(await newFile());
    await createSqliteJobStore(db).open();
    const seen: string[] = [];
    const explain = (sql: string, values: never[]) => {
      if (/^SELECT/.test(sql)) {
        seen.push(
          ...db.all(`EXPLAIN QUERY PLAN ${sql}`, ...values).map((row) => String(row.detail)),
        );
      }
    };
    const watched: Pick<SqliteDatabase, "all" | "get"> = {
      all: (sql, ...values) => {
        explain(sql, values as never[]);
        return db.all(sql, ...values);
      },
      get: (sql, ...values) => {
        explain(sql, values as never[]);
        return db.get(sql, ...values);
      },
    };
    const spy = {
      ...db,
      ...watched,
      write: <T>(work: (tx: never) => T) => db.write((tx) => work({ ...tx, ...watched } as never)),
    } as SqliteDatabase;
    const store = createSqliteJobStore(spy);
    for (const [i, account] of ["acct_a", "acct_a", "acct_b"].entries()) {
      await store.insert(jobOf(`job_${i}`, { account, slot: `k${i}` }));
      await store.apply(`job_${i}`, { kind: "accept", now: 1 });
    }
    const claim = { kind: "image", owner: "w", fullUpstreams: [], modelLimits: new Map() } as const;
    await store.claim({ ...claim, now: 1 });
    await store.claim({ ...claim, now: 99_999_999 });
    await store.takeDue({ states: ["queued"], now: 9, until: 10, limit: 9 });
    await store.findByOutput("file_a");
    await store.findBySlot({ scope: "s", key: "k" });
    const page = { states: ["queued"], kind: undefined, after: undefined, limit: 9 } as const;
    await store.list({ ...page, of: { keyId: "key_a" } });
    await store.list({ ...page, of: { accountId: "acct_a" } });
    expect(seen.length).toBeGreaterThan(10);
    // json_each and the count of what runs read what is small by its nature.
    expect(seen.filter((one) => /^SCAN (?!value|json_each)|TEMP B-TREE/.test(one))).toEqual([]);
    for (const index of [
      "due",
      "waiting",
      "running",
      "lost",
      "served",
      "slot",
      "of_key",
      "of_account",
    ]) {
      expect(
        seen.some((one) => one.includes(`media_job_${index} `)),
        index,
      ).toBe(true);
    }
  });
});
