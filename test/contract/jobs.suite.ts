import { beforeEach, describe, expect, test } from "vitest";
import type { MediaKind } from "../../services/media/jobs/job.ts";
import type { JobCommand } from "../../services/media/jobs/lifecycle.ts";
import type { ClaimQuery, JobStore } from "../../services/media/jobs/store.ts";
import { dueJobsContract } from "./jobs.due.suite.ts";
import { listedJobsContract } from "./jobs.list.suite.ts";
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
import { jobWebhooksContract } from "./jobs.webhooks.suite.ts";

/** The rules for every store of jobs. `open` gives two clients of one empty store. */
export function jobStoreContract(open: () => Promise<[JobStore, JobStore]>): void {
  let store: JobStore;
  let second: JobStore;
  beforeEach(async () => {
    [store, second] = await open();
  });

  const queued = (jobId: string, shape: JobShape = {}) => queuedIn(store, jobId, shape);
  const claimed = async (more: Partial<ClaimQuery> = {}, by = store) =>
    (await by.claim(query(more)))?.jobId;

  describe("a job", () => {
    test("comes back as it went in, at every step of its life", async () => {
      const job = jobOf("job_a", { slot: "k", upstreams: ["a", "b"] });
      expect(await store.insert(job)).toBeUndefined();
      expect(await second.find("job_a")).toEqual(job);
      const reference = {
        fileId: "f",
        blobKey: "b",
        mimeType: "m",
        sizeBytes: 1,
        width: 2,
        height: 3,
      };
      const steps: JobCommand[] = [
        { kind: "attach", pinned: [reference], now },
        { kind: "accept", now },
        { kind: "published", now },
        { kind: "claim", owner: "w", now },
        { kind: "resumable", fence: 1, resumeId: "task/1?x=é" },
        { kind: "progress", fence: 1, percent: 40 },
        { kind: "set-aside", fence: 1, until: now + 1, nextUpstream: true, sent: false, now },
        { kind: "claim", owner: "w2", now: now + 5 },
        { kind: "win", fence: 2, outputs: [output], now: now + 6 },
        { kind: "complete", charged: 2n ** 62n, expiresAt: now + 9, now: now + 7 },
        { kind: "unpinned" },
      ];
      for (const command of steps) {
        const stepped = await store.apply("job_a", command);
        expect(stepped).toBeDefined();
        expect(await second.find("job_a")).toEqual(stepped);
      }
      expect(await second.find("job_a")).toMatchObject({
        state: "completed",
        upstreamIndex: 1,
        resumeId: "task/1?x=é",
        charged: 2n ** 62n,
        outputs: [output],
        pinned: [reference],
        events: [{}, {}, {}, {}, {}, {}, { name: "completed" }],
      });
    });

    test("that has failed says why", async () => {
      await queued("job_a");
      await store.claim(query());
      await must(
        store,
        "job_a",
        { kind: "lose", fence: 1, failure, now },
        { kind: "fail", charged: 0n, expiresAt: undefined, now },
      );
      const found = await second.find("job_a");
      expect(found).toMatchObject({ state: "failed", failure, charged: 0n });
      expect(found?.expiresAt).toBeUndefined();
      expect(found?.dueAt).toBeDefined();
    });

    test("that is not there is nowhere", async () => {
      expect(await store.find("job_a")).toBeUndefined();
      expect(await store.apply("job_a", { kind: "accept", now })).toBeUndefined();
      expect(await store.findBySlot({ scope: "s", key: "k" })).toBeUndefined();
      expect(await claimed()).toBeUndefined();
      expect(await store.forget("job_a", now)).toBe(false);
    });

    test("makes a step once, asked by any number at the same time or later", async () => {
      await queued("job_a");
      await store.claim(query());
      const win: JobCommand = { kind: "win", fence: 1, outputs: [output], now };
      const lose: JobCommand = { kind: "lose", fence: 1, failure, now };
      const ends = await Promise.all(
        [store, second, store, second].flatMap((one) => [
          one.apply("job_a", win),
          one.apply("job_a", lose),
        ]),
      );
      expect(ends.filter((job) => job)).toHaveLength(1);
      expect(await store.apply("job_a", win)).toBeUndefined();
      expect(await second.apply("job_a", lose)).toBeUndefined();
    });

    test("is not torn by many writers at once", async () => {
      await queued("job_a");
      await store.claim(query());
      const reports = Array.from({ length: 60 }, (_, i) =>
        [store, second][i % 2]?.apply("job_a", { kind: "progress", fence: 1, percent: i }),
      );
      const beats = Array.from({ length: 20 }, (_, i) =>
        second.apply("job_a", { kind: "heartbeat", fence: 1, now: now + i }),
      );
      await Promise.all([...reports, ...beats]);
      expect(await store.find("job_a")).toMatchObject({ progress: 59, state: "running" });
    });
  });

  describe("what a caller wrote", () => {
    test("is not kept of a job that was refused, nor of one that is completed", async () => {
      const words = "x".repeat(100);
      const textOf = async (jobId: string) => {
        const { spec } = (await second.find(jobId)) ?? {};
        return JSON.stringify({ request: spec?.request, references: spec?.references });
      };
      await store.insert(jobOf("job_a"));
      expect(await textOf("job_a")).toContain(words);
      await must(store, "job_a", { kind: "reject", failure, now });
      expect(await textOf("job_a")).not.toContain(words);
      await queued("job_b");
      await store.claim(query());
      await must(
        store,
        "job_b",
        { kind: "win", fence: 1, outputs: [output], now },
        { kind: "complete", charged: 1n, expiresAt: now + 9, now },
      );
      expect(await textOf("job_b")).not.toContain(words);
      expect((await second.find("job_b"))?.spec).toMatchObject({ model: "m", kind: "image" });
    });
  });

  describe("an output", () => {
    test("is found by its file id from its winning on, until its job goes", async () => {
      await queued("job_a");
      await store.claim(query());
      expect(await second.findByOutput("file_a")).toBeUndefined();
      const outputs = [output, { ...output, fileId: "file_b" }];
      await must(store, "job_a", { kind: "win", fence: 1, outputs, now });
      for (const fileId of ["file_a", "file_b"]) {
        expect((await second.findByOutput(fileId))?.jobId).toBe("job_a");
      }
      expect(await second.findByOutput("file_c")).toBeUndefined();
      await must(store, "job_a", { kind: "complete", charged: 1n, expiresAt: now + 9, now });
      expect((await store.findByOutput("file_b"))?.state).toBe("completed");
      expect(await store.forget("job_a", now + 9)).toBe(true);
      expect(await second.findByOutput("file_a")).toBeUndefined();
    });

    test("that was lent keeps its job, unless that has gone already", async () => {
      await queued("job_a");
      await store.claim(query());
      await must(
        store,
        "job_a",
        { kind: "win", fence: 1, outputs: [output], now },
        { kind: "complete", charged: 1n, expiresAt: now + 9, now },
      );
      const ends = await Promise.all([
        store.apply("job_a", { kind: "keep", until: now + 99, now: now + 8 }),
        second.forget("job_a", now + 9),
      ]);
      const isKept = ends[0] !== undefined;
      expect(ends[1]).toBe(!isKept);
      expect((await store.find("job_a"))?.expiresAt).toBe(isKept ? now + 99 : undefined);
    });
  });

  describe("a job that no upstream takes", () => {
    test("comes back as it went in, and is claimed when it is offered again", async () => {
      await queued("job_a", { upstreams: ["a", "b"] });
      const first = await store.claim(query());
      expect(first?.attempts).toBe(1);
      const until = now + 60_000;
      const parked = await must(
        store,
        "job_a",
        { kind: "sending", fence: 1 },
        {
          ...{ kind: "wait", fence: 1, refusal: "unreachable", until },
          ...{ nextUpstream: true, sent: true, now },
        },
      );
      expect(await second.find("job_a")).toEqual(parked);
      expect(parked).toMatchObject({ state: "queued", sent: true, upstreamIndex: 1, attempts: 0 });
      for (const at of [now, until - 1, until]) {
        expect(await claimed({ now: at })).toBeUndefined();
        expect(await second.isAnyClaimable(["image"], at)).toBe(false);
      }
      const states = ["queued"] as const;
      expect(await store.isAnyDue(states, until - 1)).toBe(false);
      expect(await store.isAnyDue(states, until)).toBe(true);
      const offered = await must(second, "job_a", { kind: "offer", now: until });
      expect(await store.find("job_a")).toEqual(offered);
      expect(await store.isAnyClaimable(["image"], until)).toBe(true);
      expect(await store.census()).toMatchObject([{ state: "queued", jobs: 1 }]);
      // The second upstream has no place, and the first one has no job.
      expect(await claimed({ now: until, fullUpstreams: ["b"] })).toBeUndefined();
      expect(await claimed({ now: until })).toBe("job_a");
    });

    test("has no place of its model, and hides no job behind it", async () => {
      await queued("job_a", { createdAt: now - 1 });
      await queued("job_b", { createdAt: now });
      const modelLimits = new Map([["m", 1]]);
      expect(await claimed({ modelLimits })).toBe("job_a");
      expect(await claimed({ modelLimits })).toBeUndefined();
      await must(store, "job_a", {
        ...{ kind: "wait", fence: 1, refusal: "unavailable", until: now + 5 },
        ...{ nextUpstream: false, sent: false, now },
      });
      expect(await store.census()).toMatchObject([{ state: "queued", jobs: 2 }]);
      expect(await claimed({ modelLimits })).toBe("job_b");
    });
  });

  describe("an idempotency slot", () => {
    test("has one job, however many are inserted at the same time", async () => {
      const all = Array.from({ length: 50 }, (_, i) => `job_${i}`);
      const holders = await Promise.all(
        all.map((jobId, i) => [store, second][i % 2]?.insert(jobOf(jobId, { slot: "k" }))),
      );
      const winners = all.filter((_, i) => holders[i] === undefined);
      expect(winners).toHaveLength(1);
      const others = new Set(holders.flatMap((job) => job?.jobId ?? []));
      expect([...others]).toEqual(winners);
      const found = await second.findBySlot({ scope: "key_a/image", key: "k" });
      expect(found?.jobId).toBe(winners[0]);
    });

    test("counts with its scope, and is free again after a rejection and after the job is gone", async () => {
      for (const [jobId, shape] of [
        ["job_a", {}],
        ["job_b", { key: "key_b" }],
        ["job_c", { kind: "music" }],
      ] as [string, JobShape][]) {
        expect(await store.insert(jobOf(jobId, { ...shape, slot: "k" }))).toBeUndefined();
      }
      expect((await store.insert(jobOf("job_d", { slot: "k" })))?.jobId).toBe("job_a");
      await must(store, "job_a", { kind: "reject", failure, now });
      expect(await second.insert(jobOf("job_d", { slot: "k" }))).toBeUndefined();
      await must(store, "job_d", { kind: "reject", failure, now });
      expect(await store.forget("job_d", now)).toBe(true);
      expect(await second.insert(jobOf("job_d", { slot: "k" }))).toBeUndefined();
    });

    test("without a key is none: such jobs do not meet", async () => {
      expect(await store.insert(jobOf("job_a"))).toBeUndefined();
      expect(await store.insert(jobOf("job_b"))).toBeUndefined();
      expect((await store.insert(jobOf("job_b")))?.jobId).toBe("job_b");
    });
  });

  describe("a claim", () => {
    test("takes each job once, with any number of claimers", async () => {
      for (let i = 0; i < 20; i++) await queued(`job_${i}`);
      const claims = await Promise.all(
        Array.from({ length: 30 }, (_, i) => [store, second][i % 2]?.claim(query())),
      );
      const ids = claims.flatMap((job) => job?.jobId ?? []);
      expect(ids).toHaveLength(20);
      expect(new Set(ids).size).toBe(20);
    });

    test("takes only accepted jobs of its kind", async () => {
      await store.insert(jobOf("job_a"));
      await queued("job_b", { kind: "music" });
      expect(await claimed()).toBeUndefined();
      expect(await claimed({ kind: "video" })).toBeUndefined();
      expect(await claimed({ kind: "music" })).toBe("job_b");
    });

    test("takes the oldest of an account first", async () => {
      await queued("job_b", { createdAt: now + 1, model: "a" });
      await queued("job_a", { createdAt: now, model: "b" });
      await queued("job_c", { createdAt: now + 2, model: "a" });
      expect([await claimed(), await claimed(), await claimed()]).toEqual([
        "job_a",
        "job_b",
        "job_c",
      ]);
    });

    test("goes to the account with the fewest running", async () => {
      for (let i = 0; i < 4; i++) await queued(`job_a${i}`, { createdAt: now + i });
      for (let i = 0; i < 2; i++)
        await queued(`job_b${i}`, { account: "acct_b", createdAt: now + 10 });
      await queued("job_c0", { account: "acct_c", createdAt: now + 20 });
      const order: (string | undefined)[] = [];
      for (let i = 0; i < 7; i++) order.push((await claimed({ now: now + i }))?.slice(0, 5));
      expect(order).toEqual(["job_a", "job_b", "job_c", "job_a", "job_b", "job_a", "job_a"]);
    });

    test("with equally many running goes to the account served longest ago", async () => {
      for (let i = 0; i < 100; i++) await queued(`job_a${i}`, { createdAt: now });
      for (let i = 0; i < 2; i++)
        await queued(`job_b${i}`, { account: "acct_b", createdAt: now + 10 });
      const order: string[] = [];
      for (let i = 0; i < 4; i++) {
        const job = await store.claim(query({ now: now + i }));
        order.push(job?.accountId ?? "");
        // Each job ends before the next one is claimed, like with a single worker.
        await must(store, job?.jobId ?? "", { kind: "win", fence: 1, outputs: [], now: now + i });
      }
      expect(order).toEqual(["acct_a", "acct_b", "acct_a", "acct_b"]);
    });

    test("takes a lost job again, and not before it is lost", async () => {
      await queued("job_a");
      const first = await store.claim(query());
      const until = first?.lease?.until ?? 0;
      expect(await claimed({ now: until - 1 })).toBeUndefined();
      const again = await second.claim(query({ owner: "other", now: until }));
      expect(again).toMatchObject({ jobId: "job_a", fence: 2, lease: { owner: "other" } });
      expect(
        await store.apply("job_a", { kind: "heartbeat", fence: 1, now: until }),
      ).toBeUndefined();
    });

    test("is worth making where a job of a kind waits or is lost", async () => {
      const isWorthIt = (at: number, ...kinds: MediaKind[]) => second.isAnyClaimable(kinds, at);
      expect(await isWorthIt(now, "image", "video", "music")).toBe(false);
      await queued("job_a");
      expect(await isWorthIt(now, "video", "image")).toBe(true);
      expect(await isWorthIt(now, "video", "music")).toBe(false);
      const until = (await store.claim(query()))?.lease?.until ?? 0;
      expect(await isWorthIt(until - 1, "image")).toBe(false);
      expect(await isWorthIt(until, "video", "image")).toBe(true);
      expect(await isWorthIt(until, "video")).toBe(false);
    });

    test("of a job without attempts left fails it", async () => {
      await queued("job_a");
      for (let i = 0; i < 3; i++) await store.claim(query({ now: now + i * 30_000 }));
      const last = await store.claim(query({ now: now + 90_000 }));
      expect(last).toMatchObject({ state: "failing", attempts: 3 });
    });

    test("leaves jobs of full upstreams alone", async () => {
      await queued("job_a", { upstreams: ["a"], createdAt: now - 1 });
      await queued("job_b", { upstreams: ["b"] });
      expect(await claimed({ fullUpstreams: ["a"] })).toBe("job_b");
      expect(await claimed({ fullUpstreams: ["a", "b"] })).toBeUndefined();
      const lost = { now: now + 60_000, fullUpstreams: ["b"] };
      expect(await claimed(lost)).toBe("job_a");
      expect(await claimed(lost)).toBeUndefined();
    });

    test("never begins more jobs of a model than its limit, with any number of claimers", async () => {
      for (let i = 0; i < 12; i++) {
        await queued(`job_a${i}`, { model: "a", account: `acct_${i % 3}`, createdAt: now - 1 });
      }
      await queued("job_b", { model: "b" });
      const modelLimits = new Map([["a", 3]]);
      const claims = await Promise.all(
        Array.from({ length: 10 }, (_, i) => [store, second][i % 2]?.claim(query({ modelLimits }))),
      );
      const models = claims.flatMap((job) => job?.spec.model ?? []);
      expect(models.filter((model) => model === "a")).toHaveLength(3);
      expect(models.filter((model) => model === "b")).toHaveLength(1);
      // A lost job keeps its place. An ended one frees it.
      const lost = await store.claim(query({ modelLimits, now: now + 30_000 }));
      expect(lost?.fence).toBe(2);
      const { jobId = "", fence = 0 } = lost ?? {};
      await must(store, jobId, { kind: "lose", fence, failure, now: now + 30_000 });
      const later = query({ modelLimits, now: now + 30_001 });
      while (await store.claim(later));
      const all = { states: ["running"], kind: undefined, after: undefined, limit: 99 } as const;
      const running = await store.list({ ...all, of: { keyId: "key_a" } });
      expect(running.filter(({ spec }) => spec.model === "a")).toHaveLength(3);
    });
  });

  dueJobsContract(() => [store, second]);

  jobWebhooksContract(() => [store, second]);

  listedJobsContract(() => [store, second]);
}
