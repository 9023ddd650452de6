import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { JobStatus, JobWait_Refusal } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { maxQueuedMs, maxRunningMs, maxWaitMs } from "../../services/media/limits.ts";
import { until } from "../support/until.ts";
import { worldsOf } from "./jobs.opening.ts";
import { gated, succeed } from "./jobs.upstream.ts";
import { asked, behave, catalog, longMs, parked, turnAway } from "./jobs.waits.ts";
import { bob, type createJobsWorld, image } from "./jobs.world.ts";

/** The rules for jobs whose upstream refuses all work, on any database. */
export function upstreamWaitsContract(createWorld: typeof createJobsWorld): void {
  const open = worldsOf(createWorld);

  describe("a job that its upstream does not take", () => {
    test("waits in the queue without an attempt, as long as it takes, and is charged once", async () => {
      const world = await open({ catalog });
      world.upstream.behave(turnAway());
      const { job } = await world.submit();
      for (let times = 1; times <= 6; times++) {
        const { pauseMs, job: waiting } = await parked(world, job.jobId, times);
        expect(pauseMs).toBe(2_000 * 2 ** (times - 1));
        expect(waiting.startedAt).toBeUndefined();
        // From the pause of 8 s on there is time to see that the job has not begun again.
        if (times > 2) {
          const shown = await world.get(job.jobId);
          expect(shown.status).toBe(JobStatus.QUEUED);
          expect(shown.startTime).toBeUndefined();
        }
        expect(await world.credits()).toMatchObject({ reserved: 5n, spent: 0n });
        if (times === 6) world.upstream.behave(succeed);
        world.clock.jump(pauseMs);
      }
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
      const { attempts, events, wait } = await world.admin.media.inspectJob({ jobId: job.jobId });
      expect(attempts).toBe(1);
      expect(wait?.times).toBe(6);
      expect(events.map(({ state }) => state)).toEqual([
        ...["reserving", "queued", "waiting", "running", "settling", "completed"],
      ]);
      expect(await world.credits()).toMatchObject({ reserved: 0n, spent: 5n });
    });

    test.each([
      ["too_many_requests", JobWait_Refusal.TOO_MANY_REQUESTS],
      ["unavailable", JobWait_Refusal.UNAVAILABLE],
      ["unreachable", JobWait_Refusal.UNREACHABLE],
    ] as const)(
      "tells operators why (%s), and when it is offered again",
      async (refusal, shown) => {
        const world = await open({ catalog });
        world.upstream.behave(turnAway({ refusal, retryAfterMs: 40_000 }));
        const { job } = await world.submit();
        const { until: at, pauseMs } = await parked(world, job.jobId, 1);
        const { wait } = await world.admin.media.inspectJob({ jobId: job.jobId });
        expect(wait).toMatchObject({ refusal: shown, times: 1 });
        expect(Number(wait?.nextTryTime?.seconds)).toBe(Math.floor(at / 1_000));
        expect(pauseMs).toBe(40_000);
        // An ended job is not offered again.
        await world.cancel(job.jobId);
        const ended = await world.admin.media.inspectJob({ jobId: job.jobId });
        expect(ended.wait).toMatchObject({ refusal: shown, times: 1 });
        expect(ended.wait?.nextTryTime).toBeUndefined();
      },
    );

    test("is not left alone for longer than five minutes, also where the upstream asks for more", async () => {
      const world = await open({ catalog });
      world.upstream.behave(turnAway({ retryAfterMs: 10 ** 9 }));
      const { job } = await world.submit();
      expect((await parked(world, job.jobId, 1)).pauseMs).toBe(maxWaitMs);
    });

    test("holds no place: neither a worker's, nor its model's", async () => {
      const world = await open({ catalog, workers: { image: 1 } });
      world.upstream.behave(turnAway({ retryAfterMs: longMs }));
      const first = await world.submit();
      await parked(world, first.job.jobId, 1);
      await world.fund(100n, bob);
      world.upstream.behave(succeed);
      // Of the same model, which runs one job at a time, and of another one.
      const same = await world.submit(image(), { principal: bob });
      const other = await world.submit(image({ model: "image-2" }), { principal: bob });
      for (const { job } of [same, other]) {
        expect((await world.ended(job.jobId, bob)).status).toBe(JobStatus.COMPLETED);
      }
      expect((await world.get(first.job.jobId)).status).toBe(JobStatus.QUEUED);
    });

    test("waits on over a restart of everything", async () => {
      const folder = await mkdtemp(join(tmpdir(), "genmesh-waits-"));
      onTestFinished(() => rm(folder, { recursive: true }));
      const first = await open({ catalog, folder });
      await first.fund(10n);
      first.upstream.behave(turnAway({ retryAfterMs: longMs }));
      const { job } = await first.submit();
      await parked(first, job.jobId, 1);
      const { clock } = first;
      await first[Symbol.asyncDispose]();
      const second = await open({ catalog, folder, clock });
      expect((await second.get(job.jobId)).status).toBe(JobStatus.QUEUED);
      expect(second.upstream.tasks).toEqual([]);
      clock.jump(longMs);
      expect((await second.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
    });

    test("expires a day after it was made, and is paid back", async () => {
      const world = await open({ catalog });
      world.upstream.behave(turnAway({ retryAfterMs: longMs }));
      const { job } = await world.submit();
      await parked(world, job.jobId, 1);
      // Half an hour of waiting does not count as work.
      world.clock.jump(maxRunningMs + 1_000);
      await parked(world, job.jobId, 2);
      world.clock.jump(maxQueuedMs);
      const ended = await world.ended(job.jobId);
      expect(ended.error?.reason).toBe(ErrorReason.JOB_EXPIRED);
      expect(await world.credits()).toMatchObject({ reserved: 0n, spent: 0n });
    });

    test("goes to the next upstream at once, and after the last one waits", async () => {
      const world = await open({ catalog });
      world.upstream.behave(turnAway({ retryAfterMs: longMs }));
      const { job } = await world.submit(image({ model: "both" }));
      await parked(world, job.jobId, 2);
      expect(asked(world)).toEqual(["one", "two"]);
      world.upstream.behave((task) =>
        task.upstream.name === "two" ? succeed(task) : turnAway()(task),
      );
      world.clock.jump(longMs);
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
      expect(asked(world)).toEqual(["one", "two", "one", "two"]);
    });

    test("stays with an upstream that may have written it down", async () => {
      const world = await open({ catalog });
      const unsure = { refusal: "unavailable", isCertain: false } as const;
      world.upstream.behave(turnAway({ ...unsure, retryAfterMs: longMs }));
      const { job } = await world.submit(image({ model: "peers" }));
      await parked(world, job.jobId, 1);
      world.upstream.behave(turnAway({ retryAfterMs: longMs }));
      world.clock.jump(longMs);
      await parked(world, job.jobId, 2);
      world.upstream.behave(succeed);
      world.clock.jump(longMs);
      await world.ended(job.jobId);
      expect(asked(world)).toEqual(["peer", "peer", "peer"]);
    });
  });

  describe("a job that an upstream denies what is configured for", () => {
    test.each(["denied", "account_empty"] as const)(
      "goes to the next one (%s), which operators are told of, and is charged once",
      async (refusal) => {
        const world = await open({ catalog });
        behave(world, { one: refusal });
        const { job } = await world.submit(image({ model: "both" }));
        expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
        expect(asked(world)).toEqual(["one", "two"]);
        const shown = await world.admin.media.inspectJob({ jobId: job.jobId });
        const { DENIED, ACCOUNT_EMPTY } = JobWait_Refusal;
        expect(shown).toMatchObject({
          ...{ upstream: "two", attempts: 1 },
          wait: { times: 1, refusal: refusal === "denied" ? DENIED : ACCOUNT_EMPTY },
        });
        // Callers learn nothing of upstreams.
        expect(JSON.stringify(await world.get(job.jobId), (_, value) => String(value))).not.toMatch(
          /"two"|upstream/,
        );
        expect(await world.credits()).toMatchObject({ reserved: 0n, spent: 5n });
      },
    );

    test("fails at once where there is no other, or all deny it", async () => {
      const world = await open({ catalog });
      behave(world, { one: "denied", two: "denied" });
      for (const model of ["image-1", "both"]) {
        const { job } = await world.submit(image({ model }));
        const ended = await world.ended(job.jobId);
        expect(ended.error?.reason).toBe(ErrorReason.GENERATION_FAILED);
      }
      expect(asked(world)).toEqual(["one", "one", "two"]);
      expect(await world.credits()).toMatchObject({ reserved: 0n, spent: 0n });
    });

    test("waits for one that was only busy", async () => {
      const world = await open({ catalog });
      behave(world, { one: "too_many_requests", two: "denied" });
      const { job } = await world.submit(image({ model: "both" }));
      await parked(world, job.jobId, 2);
      behave(world, { two: "denied" });
      world.clock.jump(maxWaitMs);
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
      expect(asked(world)).toEqual(["one", "two", "one"]);
    });
  });

  test("jobs that waited are taken fairly among accounts", async () => {
    const world = await open({ catalog, workers: { image: 1 } });
    await world.fund(100n, bob);
    world.upstream.behave(turnAway({ retryAfterMs: 30_000 }));
    const body = image({ model: "image-2" });
    const jobs = [await world.submit(body), await world.submit(body), await world.submit(body)];
    const bobs = await world.submit(body, { principal: bob });
    for (const { job } of [...jobs, bobs]) await parked(world, job.jobId, 1);
    const gate = Promise.withResolvers<void>();
    world.upstream.behave(gated(gate.promise));
    const before = world.upstream.tasks.length;
    world.clock.jump(31_000);
    await until("all to be offered", async () => {
      const found = await Promise.all(
        [...jobs, bobs].map(({ job }) => world.store.find(job.jobId)),
      );
      return found.every((job) => job?.wait?.until === undefined);
    });
    gate.resolve();
    for (const { job } of jobs) await world.ended(job.jobId);
    await world.ended(bobs.job.jobId, bob);
    const order = world.upstream.tasks.slice(before).map(({ jobId }) => jobId);
    expect(order.indexOf(bobs.job.jobId)).toBeLessThanOrEqual(1);
  });
}
