import { describe, expect, test } from "vitest";
import { JobKind, JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { NotTakenError } from "../../services/upstreams/media/port.ts";
import { attemptsLost, worldsOf } from "./jobs.opening.ts";
import { fail, succeed } from "./jobs.upstream.ts";
import { type createJobsWorld, music } from "./jobs.world.ts";

/** The rules for jobs whose upstream rests, on any database. */
export function restingContract(createWorld: typeof createJobsWorld): void {
  const open = worldsOf(createWorld);

  describe("a job whose upstream rests", () => {
    const catalog = `upstreams: { one: { protocol: builtin }, two: { protocol: builtin } }
models:
  - { id: music-1, kind: music, upstream: one, fallbackUpstreams: [two], creditPrice: 20 }
`;
    const notTaken = () =>
      Promise.reject(new NotTakenError("too_many_requests", { isCertain: true, cause: undefined }));
    const askedOf = (world: Awaited<ReturnType<typeof open>>) =>
      world.upstream.tasks.map(({ upstream }) => upstream.name);

    test("is made at the next one, and nothing of that is an attempt or a failure", async () => {
      const world = await open({ catalog });
      world.upstream.resting.add("one");
      const { job } = await world.submit(music(), { kind: JobKind.MUSIC });
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
      expect(askedOf(world)).toEqual(["two"]);
      const stored = await world.store.find(job.jobId);
      expect(stored).toMatchObject({ attempts: 1, upstreamIndex: 1, sent: false });
      expect(stored?.failedTries).toBeUndefined();
      expect(stored?.events.filter(({ name }) => name === "running")).toHaveLength(1);
    });

    test("stays there once it may have begun it", async () => {
      const world = await open({ catalog });
      world.upstream.behave(async (task) => {
        await task.sending();
        if (world.upstream.tasks.length > 1) return succeed(task);
        await task.saveResumeId("task_1");
        world.upstream.resting.add("one");
        return fail("unknown")(task);
      });
      const { job } = await world.submit(music(), { kind: JobKind.MUSIC });
      await attemptsLost(world, job.jobId, 1);
      world.clock.jump(10_000);
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
      expect(askedOf(world)).toEqual(["one", "one"]);
    });

    test("keeps the tries that failed, of which billing hears at its end", async () => {
      const world = await open({ catalog });
      world.upstream.behave((task) => (task.upstream.name === "two" ? succeed(task) : notTaken()));
      const { job } = await world.submit(music(), { kind: JobKind.MUSIC });
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
      expect((await world.store.find(job.jobId))?.failedTries).toEqual([
        { lane: "one", kind: "too_many_requests" },
      ]);
    });
  });
}
