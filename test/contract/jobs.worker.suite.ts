import type { Interceptor } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { ErrorReason, errorRow, RefusalError } from "#kit/base/errors.ts";
import type { ApplyRequest } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { type Job, JobKind, JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { maxQueuedMs, maxRunningMs } from "../../services/media/limits.ts";
import { GenerationError, type GenerationTask } from "../../services/upstreams/media/port.ts";
import { until } from "../support/until.ts";
import { attemptsLost, worldsOf } from "./jobs.opening.ts";
import { fail, gated, hang, storeOne, succeed } from "./jobs.upstream.ts";
import { type createJobsWorld, image, type JobsWorld, music, video } from "./jobs.world.ts";

/** The rules for workers, on any database. */
export function workerContract(createWorld: typeof createJobsWorld): void {
  const open = worldsOf(createWorld);

  const running = (world: JobsWorld, jobId: string) =>
    until("the job to run", async () => {
      const job = await world.get(jobId);
      return job.status === JobStatus.RUNNING ? job : undefined;
    });
  const failedWith = (job: Job) => job.error?.reason;

  describe("a generation", () => {
    test("that fails for good fails the job, and costs nothing", async () => {
      const world = await open();
      world.upstream.behave(fail("failed"));
      const { job } = await world.submit();
      const ended = await world.ended(job.jobId);
      expect(ended).toMatchObject({ status: JobStatus.FAILED, creditsCharged: 0n, outputs: [] });
      expect(failedWith(ended)).toBe(ErrorReason.GENERATION_FAILED);
      expect(ended.error?.message).not.toContain("scripted");
      expect(await world.credits()).toMatchObject({ reserved: 0n, spent: 0n });
      expect(world.upstream.tasks).toHaveLength(1);
    });

    test("that is refused for its content says so", async () => {
      const world = await open();
      world.upstream.behave(fail("content_policy"));
      const { job } = await world.submit(video(), { kind: JobKind.VIDEO });
      expect(failedWith(await world.ended(job.jobId))).toBe(ErrorReason.CONTENT_POLICY_VIOLATION);
    });

    test("that no upstream of another deployment would take says so, for free", async () => {
      const world = await open();
      world.upstream.behave(fail("unavailable"));
      const { job } = await world.submit();
      const ended = await world.ended(job.jobId);
      expect(failedWith(ended)).toBe(ErrorReason.SERVICE_UNAVAILABLE);
      expect(ended.error?.message).toBe(errorRow(ErrorReason.UPSTREAM_UNAVAILABLE).message);
      expect(await world.credits()).toMatchObject({ reserved: 0n, spent: 0n });
      expect(world.upstream.tasks).toHaveLength(1);
    });

    test("whose end the store does not take at once is not asked for again", async () => {
      let refusals = 0;
      const world = await open({
        beforeStore: (store) => ({
          ...store,
          async apply(jobId, command) {
            const isAway = command.kind === "lose" && refusals++ < 2;
            if (isAway) throw new RefusalError(ErrorReason.SERVICE_UNAVAILABLE);
            return store.apply(jobId, command);
          },
        }),
      });
      world.upstream.behave(fail("content_policy"));
      const { job } = await world.submit();
      expect(failedWith(await world.ended(job.jobId))).toBe(ErrorReason.CONTENT_POLICY_VIOLATION);
      expect(world.upstream.tasks).toHaveLength(1);
      expect(refusals).toBe(3);
    });

    test.each([
      ["no outputs", () => Promise.resolve([])],
      [
        "more outputs than were asked for",
        async (task: GenerationTask) => [...(await succeed(task)), await storeOne(task, "more")],
      ],
      [
        "the same output twice",
        async (task: GenerationTask) => {
          const one = await storeOne(task, "one");
          return [one, one];
        },
      ],
      [
        "outputs that it has not stored",
        async (task: GenerationTask) =>
          (await succeed(task)).map((one) => ({ ...one, blobKey: `${one.blobKey}x` })),
      ],
    ])("with %s fails the job", async (_, behaviour) => {
      const world = await open();
      world.upstream.behave(behaviour);
      const { job } = await world.submit(image({ n: 2 }));
      expect(failedWith(await world.ended(job.jobId))).toBe(ErrorReason.GENERATION_FAILED);
    });

    test("with some of its pictures, where the others were refused, charges those", async () => {
      const world = await open();
      world.upstream.behave(async (task) => [await storeOne(task, "one")]);
      const { job } = await world.submit(image({ n: 3 }));
      const ended = await world.ended(job.jobId);
      expect(ended).toMatchObject({ status: JobStatus.COMPLETED, outputCount: 3 });
      expect(ended).toMatchObject({ creditsReserved: 15n, creditsCharged: 5n });
      expect(ended.outputs).toHaveLength(1);
      expect(await world.credits()).toMatchObject({ reserved: 0n, spent: 5n });
    });

    test("shows its progress, never backwards and never 100", async () => {
      const world = await open();
      const gate = Promise.withResolvers<void>();
      const seen = Promise.withResolvers<void>();
      world.upstream.behave(async (task) => {
        task.progress(10);
        await seen.promise;
        for (const percent of [60, 30, 100]) task.progress(percent);
        await gate.promise;
        return succeed(task);
      });
      const { job } = await world.submit();
      await until("progress", async () => (await world.get(job.jobId)).progress === 10);
      seen.resolve();
      world.clock.jump(1_500);
      await until("more progress", async () => (await world.get(job.jobId)).progress === 99);
      gate.resolve();
      expect((await world.ended(job.jobId)).progress).toBe(100);
    });

    test("gets what was asked for, and its job's id as idempotency key", async () => {
      const world = await open();
      const { job } = await world.submit(music({ mode: "lyrics", lyrics: "la" }), {
        kind: JobKind.MUSIC,
      });
      await world.ended(job.jobId);
      expect(world.upstream.tasks[0]).toMatchObject({
        jobId: job.jobId,
        idempotencyKey: job.jobId,
        upstreamModel: "music-1",
        upstream: { name: "studio" },
        request: { kind: "music", mode: "lyrics", lyrics: "la" },
        resumeId: undefined,
        references: [],
      });
    });
  });

  describe("an answer that stays unknown", () => {
    test("is asked for again, three times in all, and then fails the job", async () => {
      const world = await open();
      world.upstream.behave(fail("unknown"));
      const { job } = await world.submit();
      for (let attempt = 1; attempt <= 3; attempt++) {
        await until(`attempt ${attempt}`, () => world.upstream.tasks.length >= attempt);
        if (attempt < 3) {
          await attemptsLost(world, job.jobId, attempt);
          expect((await world.get(job.jobId)).status).toBe(JobStatus.RUNNING);
          world.clock.jump(10_000);
        }
      }
      const ended = await world.ended(job.jobId);
      expect(failedWith(ended)).toBe(ErrorReason.GENERATION_FAILED);
      expect(world.upstream.tasks).toHaveLength(3);
    });

    test("of a task that upstream has named is taken up, as often as it takes", async () => {
      const world = await open();
      world.upstream.behave(async (task) => {
        if (task.resumeId === undefined) await task.saveResumeId("task_1");
        if (world.upstream.tasks.length < 6) throw new GenerationError("unknown", "away");
        return succeed(task);
      });
      const { job } = await world.submit(video(), { kind: JobKind.VIDEO });
      for (let attempt = 1; attempt < 6; attempt++) {
        await until(`attempt ${attempt}`, () => world.upstream.tasks.length >= attempt);
        await attemptsLost(world, job.jobId, attempt);
        world.clock.jump(61_000);
      }
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
      expect(world.upstream.tasks.map(({ resumeId }) => resumeId)).toEqual([
        undefined,
        ...Array.from({ length: 5 }, () => "task_1"),
      ]);
      expect(await world.credits()).toMatchObject({ reserved: 0n, spent: 45n });
    });

    test("goes to the fallback upstream at the last, never with a task of the first", async () => {
      const catalog = `upstreams: { one: { protocol: builtin }, two: { protocol: builtin } }
models:
  - { id: music-1, kind: music, upstream: one, fallbackUpstreams: [two], creditPrice: 20 }
`;
      const world = await open({ catalog });
      world.upstream.behave((task) =>
        task.upstream.name === "two" ? succeed(task) : fail("unknown")(task),
      );
      const { job } = await world.submit(music(), { kind: JobKind.MUSIC });
      for (let attempt = 1; attempt < 3; attempt++) {
        await attemptsLost(world, job.jobId, attempt);
        world.clock.jump(10_000);
      }
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
      expect(world.upstream.tasks.map(({ upstream }) => upstream.name)).toEqual([
        "one",
        "one",
        "two",
      ]);
    });
  });

  describe("a worker's lease", () => {
    test("is renewed as long as it works", async () => {
      const world = await open();
      const gate = Promise.withResolvers<void>();
      world.upstream.behave(gated(gate.promise));
      const { job } = await world.submit();
      await until("its work", () => world.upstream.tasks.length === 1);
      for (let i = 0; i < 12; i++) {
        const leaseEnd = async () => (await world.store.find(job.jobId))?.lease?.until ?? 0;
        const before = await leaseEnd();
        const renewed = Promise.withResolvers<void>();
        const off = world.changes.on(job.jobId, async () => {
          if ((await leaseEnd()) > before) renewed.resolve();
        });
        world.clock.jump(9_000);
        await renewed.promise;
        off();
      }
      gate.resolve();
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
      expect(world.upstream.tasks).toHaveLength(1);
    });

    test("that another one has taken stops it, and what it made later is not the job's", async () => {
      const world = await open();
      const gate = Promise.withResolvers<void>();
      const late = Promise.withResolvers<unknown>();
      world.upstream.behave(async (task) => {
        if (world.upstream.tasks.length > 1) return succeed(task);
        // The attempt ignores its signal, like a process that hangs.
        await gate.promise;
        late.resolve(await task.store(Buffer.from("late"), "image/png").catch((error) => error));
        return [];
      });
      const { job } = await world.submit();
      await running(world, job.jobId);
      // Another worker claims the job, like after a pause of this worker that is longer than its lease.
      const stolen = world.clock.now() + 31_000;
      const thief = {
        kind: "image",
        owner: "thief",
        fullUpstreams: [],
        modelLimits: new Map(),
      } as const;
      expect((await world.store.claim({ ...thief, now: stolen }))?.fence).toBe(2);
      world.clock.jump(9_000);
      const [first] = world.upstream.tasks;
      await until("the first worker to notice", () => first?.signal.aborted);
      gate.resolve();
      expect(await late.promise).toBeInstanceOf(Error);
      // The thief dies too. The third worker completes the job.
      world.clock.jump(61_000);
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
      expect((await world.store.find(job.jobId))?.fence).toBe(3);
      expect(await world.credits()).toMatchObject({ reserved: 0n, spent: 5n });
    });

    test("ends with the job's time, half an hour after it began", async () => {
      const world = await open();
      world.upstream.behave(hang);
      const { job } = await world.submit();
      await running(world, job.jobId);
      world.clock.jump(maxRunningMs);
      const ended = await world.ended(job.jobId);
      expect(failedWith(ended)).toBe(ErrorReason.UPSTREAM_TIMEOUT);
      expect(await world.credits()).toMatchObject({ reserved: 0n, spent: 0n });
      await until("the upstream to be left", () => world.upstream.tasks[0]?.signal.aborted);
    });

    test("handed back costs no attempt, and another worker goes on at once", async () => {
      const first = await open();
      first.upstream.behave(async (task) => {
        await task.saveResumeId("task_1");
        return hang(task);
      });
      const { job } = await first.submit();
      await until(
        "the task to be named",
        async () => (await first.store.find(job.jobId))?.resumeId,
      );
      await first.workers[0]?.drain(AbortSignal.timeout(10_000));
      expect(await first.store.find(job.jobId)).toMatchObject({ state: "running", attempts: 0 });
      const { folder, clock } = first;
      const second = await open({ folder, clock, withApi: false });
      const ended = await first.ended(job.jobId);
      expect(ended.status).toBe(JobStatus.COMPLETED);
      expect(second.upstream.tasks.map(({ resumeId }) => resumeId)).toEqual(["task_1"]);
      const { events } = await first.admin.media.inspectJob({ jobId: job.jobId });
      expect(events.map(({ state }) => state)).toEqual([
        "reserving",
        "queued",
        "running",
        "handed_back",
        "resumed",
        "settling",
        "completed",
      ]);
    });

    test("is kept by what cannot be taken up until the drain's time is over", async () => {
      const world = await open();
      const gate = Promise.withResolvers<void>();
      world.upstream.behave(gated(gate.promise));
      const [one, two] = [await world.submit(), await world.submit()];
      await running(world, one.job.jobId);
      await running(world, two.job.jobId);
      const limit = new AbortController();
      const drained = world.workers[0]?.drain(limit.signal);
      const third = await world.submit();
      gate.resolve();
      await world.ended(one.job.jobId);
      await world.ended(two.job.jobId);
      await drained;
      expect((await world.get(third.job.jobId)).status).toBe(JobStatus.QUEUED);
    });
  });

  test("a job that fails as it is claimed keeps no other kind waiting, however long billing takes", async () => {
    const gate = Promise.withResolvers<void>();
    const first = await open({ workerCount: 0 });
    const { folder, clock, store } = first;
    const { job } = await first.submit(music(), { kind: JobKind.MUSIC });
    const dead = {
      kind: "music",
      owner: "dead",
      fullUpstreams: [],
      modelLimits: new Map(),
    } as const;
    for (let lost = 0; lost < 3; lost++) {
      await store.claim({ ...dead, now: clock.now() + lost * 30_000 });
    }
    const ending = Promise.withResolvers<void>();
    const between: Interceptor = (next) => async (req) => {
      const operations = req.stream ? [] : ((req.message as ApplyRequest).operations ?? []);
      if (operations.some(({ operation }) => operation.value?.holdId === job.jobId)) {
        ending.resolve();
        await gate.promise;
      }
      return next(req);
    };
    await open({ folder, clock, withApi: false, between });
    clock.jump(91_000);
    await ending.promise;
    try {
      const other = await first.submit();
      expect((await first.ended(other.job.jobId)).status).toBe(JobStatus.COMPLETED);
    } finally {
      gate.resolve();
    }
  });

  describe("time", () => {
    test("a job that no worker begins for a day expires", async () => {
      const world = await open({ workerCount: 0 });
      const { job } = await world.submit();
      world.clock.jump(maxQueuedMs);
      const ended = await world.ended(job.jobId);
      expect(failedWith(ended)).toBe(ErrorReason.JOB_EXPIRED);
      expect(ended.startTime).toBeUndefined();
      expect(await world.credits()).toMatchObject({ reserved: 0n, spent: 0n });
    });

    test("a job whose worker died without a word is taken up again", async () => {
      const world = await open({ workerCount: 0 });
      const { job } = await world.submit();
      const dead = {
        kind: "image",
        owner: "dead",
        fullUpstreams: [],
        modelLimits: new Map(),
      } as const;
      await world.store.claim({ ...dead, now: world.clock.now() });
      const { folder, clock } = world;
      const other = await open({ folder, clock, withApi: false });
      world.clock.jump(31_000);
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
      expect(other.upstream.tasks).toHaveLength(1);
    });
  });
}
