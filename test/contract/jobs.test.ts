import { describe, expect, test } from "vitest";
import type { SqliteDatabase } from "#kit/store/sqlite.ts";
import { createSqliteJobStore } from "../../services/media/jobs/store-sqlite.ts";
import { jobsSchema, jobsSchemaName } from "../../services/media/jobs/store-sqlite-rows.ts";
import { accountsIn } from "../../services/media/jobs/waiting-jobs.ts";
import { sqliteFiles } from "../support/sqlite-files.ts";
import { waitingLineContract } from "./jobs.line.suite.ts";
import { jobOf, now, query, queuedIn } from "./jobs.shapes.ts";
import { jobStoreContract } from "./jobs.suite.ts";
import { watchedJobsContract } from "./jobs.watches.suite.ts";

const { newFile, connect, connectTwice } = sqliteFiles();

describe("jobs in SQLite", () => {
  const open = async () => {
    const stores = await connectTwice((db) => createSqliteJobStore(db));
    for (const store of stores) await store.open();
    return stores;
  };
  jobStoreContract(open);
  waitingLineContract(open);
  watchedJobsContract(open);

  test("of an account with very many waiting jobs the line has a thousand, and all others; of very many accounts nothing", async () => {
    const [store] = await open();
    const add = async (name: string, account: string, model: string) => {
      const { spec, ...job } = jobOf(`job_${name}`, { account, model, slot: name });
      const request = { ...spec.request, prompt: "p" } as typeof spec.request;
      await store.insert({ ...job, spec: { ...spec, request } });
      await store.apply(job.jobId, { kind: "accept", now });
    };
    const many = Array.from({ length: 1_000 }, (_, i) => i);
    await Promise.all(many.map((i) => add(`flood_${i}`, "acct_a", "m")));
    await Promise.all(["x", "y", "z"].map((name) => add(name, "acct_a", "m")));
    await add("other", "acct_b", "m");
    await add("another", "acct_c", "n");
    const line = await store.line("image");
    const accounts = line ? accountsIn(line.lanes, line.accounts) : [];
    const counts = accounts.map(({ accountId, createdAt }) => [accountId, createdAt.length]);
    expect(counts).toEqual([
      ["acct_a", 1_000],
      ["acct_b", 1],
      ["acct_c", 1],
    ]);
    await Promise.all(many.map((i) => add(`one_${i}`, `acct_one_${i}`, "m")));
    expect(await store.line("image")).toBeUndefined();
  });

  test("outputs of a file of before are found, and its jobs wait for nothing", async () => {
    const db = connect(await newFile());
    const [before] = jobsSchema;
    db.migrate(jobsSchemaName, [before ?? ""]);
    const { call: _, ...plain } = jobOf("job_a").spec;
    const spec = JSON.stringify({ ...plain, upstreams: [{ name: "u" }], price: "5" });
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
    await store.list({ ...page, of: { keyId: "key_a" }, model: "m" });
    const before = { createdAt: 0, jobId: "" };
    await store.list({ ...page, of: { accountId: "acct_a" }, model: "m", before });
    const range = { from: 0, until: 9 };
    await store.list({ ...page, ...range, of: { keyId: "key_a" } });
    await store.list({ ...page, ...range, of: { accountId: "acct_a" }, before });
    await store.runningFences(["job_0"]);
    await store.line("image");
    expect(seen.length).toBeGreaterThan(10);
    // json_each and the count of running jobs read tables that are always small.
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
      "of_key_model",
      "of_account_model",
    ]) {
      expect(
        seen.some((one) => one.includes(`media_job_${index} `)),
        index,
      ).toBe(true);
    }
  });

  test("marks and renewals read nothing of what jobs are to do", async () => {
    const db = connect(await newFile());
    await createSqliteJobStore(db).open();
    const said: string[] = [];
    const heard = (runner: Pick<SqliteDatabase, "all" | "get" | "run">) => ({
      all: (...[sql, ...values]: Parameters<typeof db.all>) => {
        said.push(sql);
        return runner.all(sql, ...values);
      },
      get: (...[sql, ...values]: Parameters<typeof db.get>) => {
        said.push(sql);
        return runner.get(sql, ...values);
      },
      run: (...[sql, ...values]: Parameters<typeof db.run>) => {
        said.push(sql);
        return runner.run(sql, ...values);
      },
    });
    const spy = {
      ...db,
      ...heard(db),
      write: <T>(work: (tx: never) => T) =>
        db.write((tx) => work({ ...tx, ...heard(tx) } as never)),
    } as SqliteDatabase;
    const store = createSqliteJobStore(spy);
    await queuedIn(store, "job_a");
    await store.claim(query());
    said.length = 0;
    await store.marks(["job_a"]);
    await store.renew("job_a", { kind: "published", now });
    await store.renew("job_a", { kind: "heartbeat", fence: 1, now });
    await store.renew("job_a", { kind: "progress", fence: 1, percent: 1 });
    expect(said.length).toBe(7);
    expect(said.filter((sql) => sql.includes("media_job_spec"))).toEqual([]);
  });

  test("a claim reads no more with 600 waiting accounts than with 100, and each has its turn", async () => {
    const reads: number[] = [];
    for (const accounts of [100, 600]) {
      const db = connect(await newFile());
      await createSqliteJobStore(db).open();
      let count = 0;
      const spy = {
        ...db,
        write: <T>(work: (tx: never) => T) =>
          db.write((tx) => {
            const get: typeof tx.get = (...read) => {
              count++;
              return tx.get(...read);
            };
            return work({ ...tx, get } as never);
          }),
      } as SqliteDatabase;
      const store = createSqliteJobStore(spy);
      const ids = Array.from({ length: accounts * 2 }, (_, i) => i);
      await Promise.all(
        ids.map(async (i) => {
          await store.insert(jobOf(`job_${i}`, { account: `acct_${i % accounts}`, slot: `k${i}` }));
          await store.apply(`job_${i}`, { kind: "accept", now: 1 });
        }),
      );
      count = 0;
      const claim = {
        kind: "image",
        owner: "w",
        fullUpstreams: [],
        modelLimits: new Map(),
      } as const;
      const served = new Set<string>();
      // No account is served twice while another waits, however many groups a claim reads.
      for (let i = 0; i < accounts; i++) {
        const job = await store.claim({ ...claim, now: i + 2 });
        served.add(job?.accountId ?? "");
        if (i === 9) reads.push(count);
      }
      expect(served.size).toBe(accounts);
    }
    expect(reads[1]).toBeLessThanOrEqual(reads[0] ?? 0);
  });
});
