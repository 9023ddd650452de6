import { describe, expect, test } from "vitest";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import { JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { JobStore } from "../../services/media/jobs/store.ts";
import { leaseMs, lostAnswerMs } from "../../services/media/limits.ts";
import { GenerationError, type GenerationTask } from "../../services/upstreams/media/port.ts";
import { until } from "../support/until.ts";
import { attemptsLost, worldsOf } from "./jobs.opening.ts";
import { fail, gated, hang, scriptedUpstream, succeed } from "./jobs.upstream.ts";
import { asked, catalog } from "./jobs.waits.ts";
import { type createJobsWorld, image } from "./jobs.world.ts";

/** An upstream whose answer to the request is lost. */
const loseAnswer = async (task: GenerationTask): Promise<never> => {
  await task.sending();
  throw new GenerationError("unknown", "scripted");
};

/** The rules for jobs whose upstream may have begun a generation and does not show its result, on any database. */
export function lostAnswersContract(createWorld: typeof createJobsWorld): void {
  const open = worldsOf(createWorld);

  describe("a generation that may have been begun", () => {
    test("is not begun again where the catalog says so", async () => {
      const world = await open({ catalog });
      world.upstream.behave(loseAnswer);
      const { job } = await world.submit(image({ model: "once" }));
      const ended = await world.ended(job.jobId);
      expect(ended.error?.reason).toBe(ErrorReason.GENERATION_FAILED);
      expect(ended.error?.message).toContain("answer was lost");
      expect(asked(world)).toEqual(["one"]);
      expect(await world.credits()).toMatchObject({ reserved: 0n, spent: 0n });
    });

    test.each([
      ["peers", "peer", false],
      ["both", "one", true],
    ])(
      "is asked for again (%s), three times at most, of the same upstream alone",
      async (model, upstream, mayBePaid) => {
        const world = await open({ catalog });
        world.upstream.behave(loseAnswer);
        const { job } = await world.submit(image({ model }));
        for (let attempt = 1; attempt < 3; attempt++) {
          await attemptsLost(world, job.jobId, attempt);
          world.clock.jump(10_000);
        }
        const ended = await world.ended(job.jobId);
        expect(ended.error?.reason).toBe(ErrorReason.GENERATION_FAILED);
        expect(ended.error?.message.includes("answer was lost")).toBe(mayBePaid);
        expect(asked(world)).toEqual([upstream, upstream, upstream]);
        expect(await world.credits()).toMatchObject({ reserved: 0n, spent: 0n });
      },
    );

    test("is begun again where the upstream says that nothing came of it", async () => {
      const world = await open({ catalog });
      world.upstream.behave(async (task) => {
        await task.sending();
        return world.upstream.tasks.length < 3 ? fail("broke_off")(task) : succeed(task);
      });
      const { job } = await world.submit(image({ model: "both" }));
      for (let attempt = 1; attempt < 3; attempt++) {
        await attemptsLost(world, job.jobId, attempt);
        world.clock.jump(10_000);
      }
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
      expect(asked(world)).toEqual(["one", "one", "two"]);
    });

    /** A job whose request another worker sent before it died or was stopped, and the world that continues it. */
    const lost = async (model: string, how: "dies" | "stops", workerCount = 1) => {
      const first = await open({ catalog, workerCount: 0 });
      const { folder, clock } = first;
      const { job } = await first.submit(image({ model }));
      if (how === "dies") {
        const dead = { kind: "image", owner: "dead", fullUpstreams: [] } as const;
        await first.store.claim({ ...dead, modelLimits: new Map(), now: clock.now() });
        await first.store.apply(job.jobId, { kind: "sending", fence: 1 });
      } else {
        const upstream = scriptedUpstream(async (task) => {
          await task.sending();
          return hang(task);
        });
        const worker = await open({ catalog, folder, clock, upstream, withApi: false });
        await until("the request", async () => (await first.store.find(job.jobId))?.sent);
        await worker.workers[0]?.drain(AbortSignal.abort());
      }
      const next = await open({ catalog, folder, clock, withApi: false, workerCount });
      const isUnanswered = async () => {
        const events = (await first.store.find(job.jobId))?.events;
        return events?.some(({ name }) => name === "unanswered");
      };
      return { first, next, clock, jobId: job.jobId, isUnanswered };
    };

    test("fails when its worker stops, where the catalog says so", async () => {
      const { first, next, jobId } = await lost("once", "stops");
      const ended = await first.ended(jobId);
      expect(ended.error?.reason).toBe(ErrorReason.GENERATION_FAILED);
      expect(next.upstream.tasks).toEqual([]);
      expect(await first.credits()).toMatchObject({ reserved: 0n, spent: 0n });
    });

    test("is asked for again when its worker stops, as a further attempt", async () => {
      const { first, next, jobId } = await lost("both", "stops");
      expect((await first.ended(jobId)).status).toBe(JobStatus.COMPLETED);
      expect(asked(next)).toEqual(["one"]);
      expect(await first.store.find(jobId)).toMatchObject({ attempts: 2 });
      expect(await first.credits()).toMatchObject({ reserved: 0n, spent: 5n });
    });

    test.each([
      ["once", "fails"],
      ["both", "is asked for again"],
    ])("%s: %s within two minutes of the lease of a worker that died", async (model, how) => {
      const { first, next, clock, jobId, isUnanswered } = await lost(model, "dies");
      clock.jump(leaseMs + 1_000);
      // The lost worker may still bring its outputs.
      await until("the look of the next worker", isUnanswered);
      expect((await first.get(jobId)).status).toBe(JobStatus.RUNNING);
      expect(await first.credits()).toMatchObject({ reserved: 5n });
      // It does not delay other jobs.
      const other = await first.submit(image({ model: "image-2" }));
      expect((await first.ended(other.job.jobId)).status).toBe(JobStatus.COMPLETED);
      next.upstream.tasks.splice(0);
      clock.jump(lostAnswerMs);
      const ended = await first.ended(jobId);
      const names = (await first.store.find(jobId))?.events.map(({ name }) => name) ?? [];
      if (how === "fails") {
        expect(ended.error?.reason).toBe(ErrorReason.GENERATION_FAILED);
        expect(next.upstream.tasks).toEqual([]);
        expect(names.slice(-3)).toEqual(["unanswered", "failing", "failed"]);
      } else {
        expect(ended.status).toBe(JobStatus.COMPLETED);
        expect(asked(next)).toEqual(["one"]);
        expect(names.slice(-4)).toEqual(["unanswered", "asked_again", "settling", "completed"]);
      }
      expect(await first.credits()).toMatchObject({
        reserved: 0n,
        spent: how === "fails" ? 5n : 10n,
      });
    });

    test("fails in time also where no worker has a place for it", async () => {
      const { first, clock, jobId, isUnanswered } = await lost("once", "dies", 0);
      clock.jump(leaseMs + 1_000);
      await until("the sweeper's look", isUnanswered);
      clock.jump(lostAnswerMs);
      expect((await first.ended(jobId)).error?.reason).toBe(ErrorReason.GENERATION_FAILED);
    });

    test.each([
      ["brings its outputs, which are charged once", lostAnswerMs - 10_000],
      ["brings them too late: they are nobody's", lostAnswerMs + 2_000],
    ])("whose worker was cut off from the store %s", async (_, afterLeaseMs) => {
      const first = await open({ catalog, workerCount: 0 });
      const { folder, clock } = first;
      const gate = Promise.withResolvers<void>();
      const upstream = scriptedUpstream(async (task) => {
        await task.sending();
        return gated(gate.promise)(task);
      });
      let isAway = false;
      const reach = async <T>(ask: () => Promise<T>): Promise<T> => {
        if (isAway) throw new RefusalError(ErrorReason.SERVICE_UNAVAILABLE);
        return ask();
      };
      const beforeStore = (store: JobStore): JobStore => ({
        ...store,
        apply: (jobId, command) => reach(() => store.apply(jobId, command)),
        renew: (jobId, command) => reach(() => store.renew(jobId, command)),
        claim: (query) => reach(() => store.claim(query)),
      });
      await open({ catalog, folder, clock, upstream, beforeStore, withApi: false });
      const { job } = await first.submit(image({ model: "once" }));
      await until("the request", async () => (await first.store.find(job.jobId))?.sent);
      isAway = true;
      clock.jump(leaseMs + 1_000);
      await until("a sweeper's look", async () => {
        return (await first.store.find(job.jobId))?.lease?.owner === "";
      });
      clock.jump(afterLeaseMs);
      const isLate = afterLeaseMs > lostAnswerMs;
      if (isLate) await first.ended(job.jobId);
      isAway = false;
      gate.resolve();
      const ended = await first.ended(job.jobId);
      expect(ended.status).toBe(isLate ? JobStatus.FAILED : JobStatus.COMPLETED);
      expect(upstream.tasks.length).toBe(1);
      expect(await first.credits()).toMatchObject({ reserved: 0n, spent: isLate ? 0n : 5n });
    });

    test("and that was named is taken up, though its upstream turns looks away", async () => {
      const world = await open({ catalog });
      const gate = Promise.withResolvers<void>();
      const made = gated(gate.promise);
      world.upstream.behave(async (task) => {
        if (task.resumeId !== undefined) return made(task);
        await task.sending();
        await task.saveResumeId("task_1");
        throw new GenerationError("unknown", "the looks were answered 429");
      });
      const { job } = await world.submit();
      await attemptsLost(world, job.jobId, 1);
      // The job is being made, so it is not in a queue.
      expect((await world.get(job.jobId)).status).toBe(JobStatus.RUNNING);
      gate.resolve();
      world.clock.jump(3_000);
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
      expect(world.upstream.tasks.map(({ resumeId }) => resumeId)).toEqual([undefined, "task_1"]);
    });
  });
}
