import { create } from "@bufbuild/protobuf";
import { beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/errors.ts";
import { UpstreamProtocol, UpstreamSchema } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { Job, JobState, MediaKind } from "../../services/media/jobs/job.ts";
import { type JobCommand, newJob } from "../../services/media/jobs/lifecycle.ts";
import type { ClaimQuery, JobStore } from "../../services/media/jobs/store.ts";

const now = Date.UTC(2026, 0, 15, 12);
const failure = { reason: ErrorReason.GENERATION_FAILED, message: "failed", param: undefined };
const output = {
  fileId: "file_a",
  blobKey: "outputs/job_a/1-0",
  mimeType: "image/png",
  sizeBytes: 5,
  sha256: "ab",
  width: 8,
  height: 9,
  durationSeconds: 1.5,
};

/** A job that is to be written down. */
export interface JobShape {
  account?: string;
  key?: string;
  kind?: MediaKind;
  model?: string;
  upstreams?: string[];
  createdAt?: number;
  slot?: string;
}

/** Makes it. Every field that may be long, empty or odd is. */
export function jobOf(jobId: string, shape: JobShape = {}): Job {
  const { account = "acct_a", key = "key_a", kind = "image", upstreams = ["studio"] } = shape;
  const accountId = account;
  return newJob(
    {
      jobId,
      accountId,
      keyId: key,
      slot: shape.slot === undefined ? undefined : { scope: `${key}/${kind}`, key: shape.slot },
      fingerprint: "ff",
      retryOf: "job_before",
      spec: {
        kind,
        model: shape.model ?? "m",
        modelName: "Model \u{1f30a}",
        mode: "",
        catalogVersion: "v",
        request: {
          kind: "image",
          prompt: `é'"\u0000\u{1f30a}${"x".repeat(32_000)}`,
          count: 2,
          width: 8,
          height: 8,
          size: "8x8",
          resolution: "1k",
          aspectRatio: "1:1",
        },
        references: [
          { kind: "file", fileId: "file_r", param: "referenceFileIds[0]" },
          { kind: "inline", param: "input_reference.image_url" },
        ],
        upstreamModel: "um",
        upstreams: upstreams.map((name) =>
          create(UpstreamSchema, {
            name,
            protocol: UpstreamProtocol.OPENAI,
            baseUrl: "https://example.com/v1",
            timeoutMs: 600_000n,
          }),
        ),
        price: 9_007_199_254_740_993n,
      },
    },
    shape.createdAt ?? now,
  );
}

/** What every store of jobs promises. `open` gives two clients of one store that holds nothing. */
export function jobStoreContract(open: () => Promise<[JobStore, JobStore]>): void {
  let store: JobStore;
  let second: JobStore;
  beforeEach(async () => {
    [store, second] = await open();
  });

  const must = async (jobId: string, ...commands: JobCommand[]): Promise<Job> => {
    let job: Job | undefined;
    for (const command of commands) {
      job = await store.apply(jobId, command);
      if (!job) throw new Error(`${command.kind} was not allowed`);
    }
    if (!job) throw new Error("no command");
    return job;
  };
  const queued = async (jobId: string, shape: JobShape = {}) => {
    await store.insert(jobOf(jobId, shape));
    return must(jobId, { kind: "accept", now });
  };
  const query = (more: Partial<ClaimQuery> = {}): ClaimQuery => ({
    kind: "image",
    owner: "worker",
    now,
    fullUpstreams: [],
    modelLimits: new Map(),
    ...more,
  });
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
        { kind: "set-aside", fence: 1, until: now + 1, nextUpstream: true, now },
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

    test("makes a step once, whoever asks, at the same time or later", async () => {
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
      await must("job_a", { kind: "reject", failure, now });
      expect(await second.insert(jobOf("job_d", { slot: "k" }))).toBeUndefined();
      await must("job_d", { kind: "reject", failure, now });
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
    test("takes each job once, whoever claims", async () => {
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
        // It is done before the next one is claimed, as by a worker alone.
        await must(job?.jobId ?? "", { kind: "win", fence: 1, outputs: [], now: now + i });
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

    test("never begins more jobs of a model than its limit, whoever claims", async () => {
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
      // A lost job has its place; one that ends gives it up.
      const lost = await store.claim(query({ modelLimits, now: now + 30_000 }));
      expect(lost?.fence).toBe(2);
      const { jobId = "", fence = 0 } = lost ?? {};
      await must(jobId, { kind: "lose", fence, failure, now: now + 30_000 });
      const later = query({ modelLimits, now: now + 30_001 });
      while (await store.claim(later));
      const all = { states: ["running"], kind: undefined, after: undefined, limit: 99 } as const;
      const running = await store.list({ ...all, of: { keyId: "key_a" } });
      expect(running.filter(({ spec }) => spec.model === "a")).toHaveLength(3);
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
        await queued(`job_q${i}`);
      }
      const late = now + 3_600_000;
      expect(await take(["settling"], late)).toEqual([]);
      expect(ids(await take(["queued"], late, 2))).toHaveLength(2);
      expect(ids(await take(["queued", "reserving"], late, 2)).sort()).toHaveLength(3);
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

  describe("forgetting", () => {
    test("takes terminal jobs whose time is over, and rejected ones, and nothing else", async () => {
      const expiresAt = now + 1_000;
      await queued("job_a", { slot: "k" });
      expect(await store.forget("job_a", now + 99_999_999)).toBe(false);
      await store.claim(query());
      await must(
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
      await queued("job_a");
      await store.claim(query());
      await must(
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
        if (i % 2 === 0) await must(`job_${i}`, { kind: "accept", now });
      }
      await store.insert(jobOf("job_x", { key: "key_b" }));
      await store.insert(jobOf("job_y", { account: "acct_b", key: "key_c" }));
      await must("job_1", { kind: "reject", failure, now });
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
      // The job need not be there any more.
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
  });
}
