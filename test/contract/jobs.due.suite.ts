import { beforeEach, describe, expect, test } from "vitest";
import type { Job, JobState } from "../../services/media/jobs/job.ts";
import type { ClaimQuery, JobStore } from "../../services/media/jobs/store.ts";
import { maxQueuedMs } from "../../services/media/limits.ts";
import {
  failure,
  type JobShape,
  jobOf,
  must,
  now,
  output,
  query,
  queuedIn,
} from "./jobs.shapes.ts";

/** The rules for every store of jobs about sweeping, forgetting and listing. It is a part of the jobs' suite. */
export function dueJobsContract(clients: () => [JobStore, JobStore]): void {
  let store: JobStore;
  let second: JobStore;
  beforeEach(() => {
    [store, second] = clients();
  });

  test("failed jobs of an account beyond its newest are found, and go once they are retired", async () => {
    const at = 5_000;
    const failed = async (jobId: string, createdAt: number, shape: JobShape = {}) => {
      await queuedIn(store, jobId, { createdAt, ...shape });
      const end = { kind: "fail", charged: 0n, expiresAt: now + 10 * at, now } as const;
      await must(store, jobId, { kind: "expire", now: now + maxQueuedMs + at }, end);
    };
    for (let i = 0; i < 5; i++) await failed(`job_${i}`, now + i);
    await failed("job_m", now, { kind: "music" });
    await failed("job_o", now, { account: "acct_b" });
    await queuedIn(store, "job_q", { createdAt: now - 1 });
    const beyond = (newest: number, limit = 10) =>
      store.surplus({ state: "failed", accountId: "acct_a", kind: "image", newest, limit });
    expect(await beyond(2)).toEqual(["job_2", "job_1", "job_0"]);
    expect(await beyond(2, 1)).toEqual(["job_2"]);
    expect(await beyond(5)).toEqual([]);
    const command = { kind: "retire", now: now + at } as const;
    expect(await store.apply("job_q", command)).toBeUndefined();
    await must(store, "job_0", command, { kind: "unpinned" });
    expect(await store.apply("job_0", command)).toBeUndefined();
    expect(await store.forget("job_0", now + at)).toBe(true);
    expect(await beyond(2)).toEqual(["job_2", "job_1"]);
  });

  describe("a job that its caller does not want any more", () => {
    test("is its worker's no longer, also by the look for all of its jobs", async () => {
      for (const id of ["a", "b", "c"]) await queuedIn(store, `job_${id}`, { createdAt: now });
      for (let i = 0; i < 2; i++) await store.claim(query());
      const ids = ["job_a", "job_b", "job_c", "job_x"];
      expect([...(await second.runningFences(ids))].sort()).toEqual([
        ["job_a", 1],
        ["job_b", 1],
      ]);
      await must(second, "job_a", { kind: "cancel", now });
      expect([...(await store.runningFences(ids))]).toEqual([["job_b", 1]]);
      expect(await store.runningFences([])).toEqual(new Map());
      await must(second, "job_c", { kind: "cancel", now });
      expect(await store.claim(query())).toBeUndefined();
    });

    test("is deleted once it has ended, comes back as it went in, and keeps its slot until its time", async () => {
      await queuedIn(store, "job_a", { slot: "k" });
      expect(await store.apply("job_a", { kind: "delete", now })).toBeUndefined();
      await store.claim(query());
      const deleted = await must(
        store,
        "job_a",
        { kind: "win", fence: 1, outputs: [output], now },
        { kind: "complete", charged: 1n, expiresAt: now + 9, now },
        { kind: "delete", now },
      );
      expect(await second.find("job_a")).toEqual(deleted);
      expect(JSON.stringify(deleted.spec.request)).not.toContain("xxx");
      const due = { states: ["deleted"], now, until: now + 5, limit: 9 } as const;
      expect((await second.takeDue(due)).map(({ jobId }) => jobId)).toEqual(["job_a"]);
      const erased = await must(store, "job_a", { kind: "erased" });
      expect(await second.find("job_a")).toEqual(erased);
      expect(await second.findByOutput("file_a")).toBeUndefined();
      expect((await second.insert(jobOf("job_b", { slot: "k" })))?.jobId).toBe("job_a");
      const surplus = { accountId: "acct_a", kind: "image", newest: 0, limit: 9 } as const;
      expect(await store.surplus({ ...surplus, state: "deleted" })).toEqual(["job_a"]);
      expect(await store.surplus({ ...surplus, state: "failed" })).toEqual([]);
      expect(await store.forget("job_a", now + 8)).toBe(false);
      expect(await store.forget("job_a", now + 9)).toBe(true);
      expect(await second.insert(jobOf("job_b", { slot: "k" }))).toBeUndefined();
    });
  });

  describe("a claim by a worker with few places", () => {
    test("leaves jobs alone of accounts that have their share of an upstream", async () => {
      await queuedIn(store, "job_a", { upstreams: ["a"], account: "acct_a", createdAt: now - 2 });
      await queuedIn(store, "job_b", { upstreams: ["a"], account: "acct_b", createdAt: now - 1 });
      await queuedIn(store, "job_c", { upstreams: ["b"], account: "acct_a" });
      const claimed = async (more: Partial<ClaimQuery>) => (await store.claim(query(more)))?.jobId;
      const fullAccounts = new Map([["a", ["acct_a", "acct_x"]]]);
      expect(await claimed({ fullAccounts })).toBe("job_b");
      expect(await claimed({ fullAccounts })).toBe("job_c");
      expect(await claimed({ fullAccounts })).toBeUndefined();
      expect(await claimed({})).toBe("job_a");
      const lost = { now: now + 60_000, fullAccounts };
      const again = [await claimed(lost), await claimed(lost), await claimed(lost)];
      expect(again.sort()).toEqual(["job_b", "job_c", undefined]);
    });
  });

  describe("a claim, by a clock that was set,", () => {
    test("takes a lost job whose lease a clock that was ahead has made too long", async () => {
      const ahead = now + 40 * 86_400_000;
      await queuedIn(store, "job_a");
      await store.claim(query({ now: ahead, leasesOverAt: now }));
      expect(await store.claim(query({ now: now + 60_000 }))).toBeUndefined();
      await second.bringForward(now + 3_600_000, now + 30_000);
      const job = await store.find("job_a");
      expect(job).toMatchObject({ state: "running", dueAt: now + 30_000, fence: 1 });
      expect(await store.claim(query({ now: now + 29_999 }))).toBeUndefined();
      const again = await store.claim(query({ owner: "other", now: now + 30_000 }));
      expect(again).toMatchObject({ fence: 2, lease: { owner: "other", until: now + 60_000 } });
    });

    test.for([
      ["2 minutes", 120_000],
      ["3 hours", 3 * 3_600_000],
      ["24 hours", 86_400_000],
    ] as const)(
      "takes a lost job that a clock %s ahead has claimed, and gives it its half hour",
      async ([, aheadMs]) => {
        await queuedIn(store, "job_a");
        await store.claim(query({ now: now + aheadMs, leasesOverAt: now }));
        await second.bringForward(now, now + 30_000);
        const again = await store.claim(query({ owner: "other", now: now + 30_000 }));
        expect(again).toMatchObject({ fence: 2, lease: { owner: "other", until: now + 60_000 } });
        expect(again?.deadline).toBe(now + 30_000 + 30 * 60_000);
      },
    );

    test.for(["reserving", "queued", "parked", "settling", "failing"] as const)(
      "drives on what it has put off: %s",
      async (state) => {
        const ahead = now + 3 * 3_600_000;
        if (state === "reserving") await store.insert(jobOf("job_a", { createdAt: ahead }));
        else await queuedIn(store, "job_a", { createdAt: now });
        const claimed = async () => store.claim(query({ now: ahead, leasesOverAt: now }));
        if (state === "queued") await must(store, "job_a", { kind: "published", now: ahead });
        if (state === "parked") {
          await claimed();
          await must(store, "job_a", {
            ...{ kind: "wait", fence: 1, refusal: "unavailable", nextUpstream: false, sent: false },
            ...{ until: ahead + 300_000, now: ahead },
          } as const);
        }
        if (state === "settling") {
          await claimed();
          await must(store, "job_a", { kind: "win", fence: 1, outputs: [], now: ahead });
        }
        if (state === "failing") {
          await claimed();
          await must(store, "job_a", { kind: "lose", fence: 1, failure, now: ahead });
        }
        const inside = state === "parked" ? "queued" : state;
        const until = now + 60_000;
        const due = () => second.takeDue({ states: [inside], now: now + 30_000, until, limit: 10 });
        expect(await due()).toEqual([]);
        await second.bringForward(now, now + 30_000);
        expect(await due()).toHaveLength(1);
        if (state !== "parked") return;
        const offered = await store.apply("job_a", { kind: "offer", now: now + 30_000 });
        expect(offered?.wait?.until).toBeUndefined();
      },
    );

    test("leaves alone what is put off no longer than it may be", async () => {
      await queuedIn(store, "job_a");
      await store.claim(query());
      const command = { kind: "set-aside", fence: 1, nextUpstream: false, sent: false } as const;
      await must(store, "job_a", { ...command, until: now + 60_000, now });
      await store.insert(jobOf("job_b"));
      const before = await Promise.all(["job_a", "job_b"].map((id) => store.find(id)));
      await second.bringForward(now, now + 1);
      expect(await Promise.all(["job_a", "job_b"].map((id) => store.find(id)))).toEqual(before);
    });

    test("goes by the time at which leases are judged, and writes the clock's", async () => {
      await queuedIn(store, "job_a");
      const first = await store.claim(query());
      const until = first?.lease?.until ?? 0;
      const later = { now: until + 40 * 86_400_000, leasesOverAt: until - 1 };
      expect(await store.claim(query(later))).toBeUndefined();
      const again = await second.claim(query({ ...later, leasesOverAt: until }));
      expect(again).toMatchObject({ state: "running", fence: 2 });
      expect(again?.lease?.until).toBe(later.now + 30_000);
    });
  });

  describe("due jobs", () => {
    const take = (states: JobState[], at: number, limit = 10) =>
      store.takeDue({ states, now: at, until: at + 4_000, limit });
    const ids = (jobs: Job[]) => jobs.map(({ jobId }) => jobId);

    test("are taken when they are due, longest due first, by one taker", async () => {
      await store.insert(jobOf("job_b", { createdAt: now + 1 }));
      await store.insert(jobOf("job_a", { createdAt: now }));
      const due = (await store.find("job_a"))?.dueAt ?? 0;
      expect(ids(await take(["reserving"], due - 1))).toEqual([]);
      expect(ids(await take(["reserving"], due))).toEqual(["job_a"]);
      expect(ids(await take(["reserving"], due + 1))).toEqual(["job_b"]);
      expect(ids(await take(["reserving"], due + 2))).toEqual([]);
      expect(ids(await take(["reserving"], due + 4_000))).toEqual(["job_a"]);
    });

    test("are taken by state, so many of each", async () => {
      for (let i = 0; i < 3; i++) {
        await store.insert(jobOf(`job_r${i}`));
        await queuedIn(store, `job_q${i}`);
      }
      const late = now + 3_600_000;
      expect(await take(["settling"], late)).toEqual([]);
      expect(ids(await take(["queued"], late, 2))).toHaveLength(2);
      expect(ids(await take(["queued", "reserving"], late, 2)).sort()).toHaveLength(3);
    });

    test("are told of without being taken", async () => {
      await store.insert(jobOf("job_a"));
      const due = (await store.find("job_a"))?.dueAt ?? 0;
      expect(await second.isAnyDue(["reserving", "queued"], due - 1)).toBe(false);
      expect(await second.isAnyDue(["reserving", "queued"], due)).toBe(true);
      expect(await store.isAnyDue(["queued", "running"], due)).toBe(false);
      expect(await store.isAnyDue([], due)).toBe(false);
      expect(ids(await take(["reserving"], due))).toEqual(["job_a"]);
      expect(await second.isAnyDue(["reserving"], due)).toBe(false);
    });

    test("are taken by one of many", async () => {
      for (let i = 0; i < 40; i++) await store.insert(jobOf(`job_${i}`));
      const at = now + 10_000;
      const takes = await Promise.all(
        [store, second, store, second].map((one) =>
          one.takeDue({ states: ["reserving"], now: at, until: at + 1_000, limit: 15 }),
        ),
      );
      const all = takes.flatMap(ids);
      expect(all).toHaveLength(40);
      expect(new Set(all).size).toBe(40);
    });
  });

  describe("a census", () => {
    test("counts open jobs by kind and state, with the oldest of each, and no others", async () => {
      expect(await store.census()).toEqual([]);
      await store.insert(jobOf("job_r", { kind: "video", createdAt: now + 5 }));
      await queuedIn(store, "job_w", { kind: "video", createdAt: now + 4 });
      await queuedIn(store, "job_a", { createdAt: now });
      await queuedIn(store, "job_b", { createdAt: now + 1 });
      await queuedIn(store, "job_c", { createdAt: now + 2, model: "other" });
      expect((await store.claim(query()))?.jobId).toBe("job_a");
      await must(
        store,
        "job_a",
        { kind: "lose", fence: 1, failure, now },
        { kind: "fail", charged: 0n, expiresAt: undefined, now },
      );
      expect((await store.claim(query()))?.jobId).toBe("job_b");
      const found = await second.census();
      expect(found).toHaveLength(4);
      expect(found).toEqual(
        expect.arrayContaining([
          { kind: "image", state: "queued", jobs: 1, oldestCreatedAt: now + 2 },
          { kind: "image", state: "running", jobs: 1, oldestCreatedAt: now + 1 },
          { kind: "video", state: "queued", jobs: 1, oldestCreatedAt: now + 4 },
          { kind: "video", state: "reserving", jobs: 1, oldestCreatedAt: now + 5 },
        ]),
      );
    });
  });

  describe("forgetting", () => {
    test("takes terminal jobs whose time is over, and rejected ones, and nothing else", async () => {
      const expiresAt = now + 1_000;
      await queuedIn(store, "job_a", { slot: "k" });
      expect(await store.forget("job_a", now + 99_999_999)).toBe(false);
      await store.claim(query());
      await must(
        store,
        "job_a",
        { kind: "win", fence: 1, outputs: [], now },
        { kind: "complete", charged: 1n, expiresAt, now },
      );
      expect(await store.forget("job_a", expiresAt - 1)).toBe(false);
      expect(await second.forget("job_a", expiresAt)).toBe(true);
      expect(await store.forget("job_a", expiresAt)).toBe(false);
      expect(await store.find("job_a")).toBeUndefined();
      expect(await store.findBySlot({ scope: "key_a/image", key: "k" })).toBeUndefined();
    });

    test("never takes what is kept for ever", async () => {
      await queuedIn(store, "job_a");
      await store.claim(query());
      await must(
        store,
        "job_a",
        { kind: "lose", fence: 1, failure, now },
        { kind: "fail", charged: 0n, expiresAt: undefined, now },
        { kind: "unpinned" },
      );
      expect(await store.forget("job_a", Number.MAX_SAFE_INTEGER)).toBe(false);
      const far = { states: ["failed"] as const, now: now + 1e12, until: now + 2e12, limit: 9 };
      expect(await store.takeDue(far)).toEqual([]);
    });
  });

  describe("lists", () => {
    const states: JobState[] = ["reserving", "queued", "running"];
    beforeEach(async () => {
      for (let i = 0; i < 6; i++) {
        const shape = {
          createdAt: now + Math.floor(i / 2),
          kind: i === 5 ? "music" : "image",
        } as const;
        await store.insert(jobOf(`job_${i}`, shape));
        if (i % 2 === 0) await must(store, `job_${i}`, { kind: "accept", now });
      }
      await store.insert(jobOf("job_x", { key: "key_b" }));
      await store.insert(jobOf("job_y", { account: "acct_b", key: "key_c" }));
      await must(store, "job_1", { kind: "reject", failure, now });
    });
    const list = async (more: object = {}) => {
      const common = {
        of: { keyId: "key_a" },
        states,
        kind: undefined,
        after: undefined,
        limit: 9,
      };
      return (await second.list({ ...common, ...more })).map(({ jobId }) => jobId);
    };

    test("come newest first, of a key or of an account", async () => {
      expect(await list()).toEqual(["job_5", "job_4", "job_3", "job_2", "job_0"]);
      expect(await list({ of: { accountId: "acct_a" } })).toContain("job_x");
      expect(await list({ of: { accountId: "acct_b" } })).toEqual(["job_y"]);
      expect(await list({ of: { keyId: "none" } })).toEqual([]);
    });

    test("go on behind a job, though several were made in the same moment", async () => {
      expect(await list({ limit: 2 })).toEqual(["job_5", "job_4"]);
      const after = { createdAt: now + 2, jobId: "job_5" };
      expect(await list({ after, limit: 2 })).toEqual(["job_4", "job_3"]);
      // The named job may have been removed meanwhile.
      expect(await list({ after: { createdAt: now + 1, jobId: "job_2x" } })).toEqual([
        "job_2",
        "job_0",
      ]);
    });

    test("are narrowed to states and to a kind", async () => {
      expect(await list({ states: ["queued"] })).toEqual(["job_4", "job_2", "job_0"]);
      expect(await list({ kind: "music" })).toEqual(["job_5"]);
      expect(await list({ kind: "video" })).toEqual([]);
    });

    test("are narrowed to a model, of a key or of an account", async () => {
      await store.insert(jobOf("job_m", { model: "other", createdAt: now + 1 }));
      await store.insert(jobOf("job_n", { model: "other", key: "key_b", createdAt: now + 2 }));
      expect(await list({ model: "other" })).toEqual(["job_m"]);
      expect(await list({ model: "m" })).toHaveLength(5);
      expect(await list({ model: "m", kind: "music" })).toEqual(["job_5"]);
      expect(await list({ model: "none" })).toEqual([]);
      const account = { of: { accountId: "acct_a" }, model: "other" };
      expect(await list(account)).toEqual(["job_n", "job_m"]);
      const after = { createdAt: now + 2, jobId: "job_n" };
      expect(await list({ ...account, after })).toEqual(["job_m"]);
    });

    test("end before a job with the nearest newer ones, newest first all the same", async () => {
      const before = { createdAt: now, jobId: "job_0" };
      expect(await list({ before, limit: 2 })).toEqual(["job_3", "job_2"]);
      expect(await list({ before })).toEqual(["job_5", "job_4", "job_3", "job_2"]);
      expect(await list({ before: { createdAt: now + 2, jobId: "job_4" } })).toEqual(["job_5"]);
      expect(await list({ before: { createdAt: now + 2, jobId: "job_5" } })).toEqual([]);
      const account = { of: { accountId: "acct_a" }, model: "m" };
      expect(await list({ ...account, before })).toContain("job_x");
    });

    test("are narrowed to a range of time, whose end is excluded, from either side", async () => {
      expect(await list({ from: now + 1 })).toEqual(["job_5", "job_4", "job_3", "job_2"]);
      expect(await list({ until: now + 2 })).toEqual(["job_3", "job_2", "job_0"]);
      const range = { from: now + 1, until: now + 2 };
      expect(await list({ from: now + 2, until: now + 1 })).toEqual([]);
      // A cursor narrows the range, and one that is outside of it does not widen it.
      const at = (i: number) => ({ createdAt: now + Math.floor(i / 2), jobId: `job_${i}` });
      expect(await list({ ...range, after: at(5) })).toEqual(["job_3", "job_2"]);
      expect(await list({ ...range, after: at(3) })).toEqual(["job_2"]);
      expect(await list({ ...range, before: at(0), limit: 1 })).toEqual(["job_2"]);
      expect(await list({ ...range, before: at(3) })).toEqual([]);
      expect(await list({ ...range, model: "m", states: ["queued"] })).toEqual(["job_2"]);
    });
  });
}
