import { timestampMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { type Job, JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { lineLookMs, maxLookPauseMs } from "../../services/media/limits.ts";
import { until } from "../support/until.ts";
import { worldsOf } from "./jobs.opening.ts";
import { gated, scriptedUpstream, succeed } from "./jobs.upstream.ts";
import { alice, as, bob, type createJobsWorld } from "./jobs.world.ts";

const common = { kind: "image", creditPrice: 1, sizes: ["64x64"] };
const studio = (maxConcurrent: number) => ({
  ...{ protocol: "openai", baseUrl: "http://127.0.0.1:1/v1", maxConcurrent },
});
/** Two models of one kind. Each has an upstream of its own that takes one job at a time. */
const twoImageModels = JSON.stringify({
  upstreams: { slow: studio(1), quick: studio(1) },
  models: [
    { ...common, id: "slow", upstream: "slow", default: true },
    { ...common, id: "quick", upstream: "quick" },
  ],
});
/** Two models of one upstream with two places. One model takes one job at a time. */
const narrowModel = JSON.stringify({
  upstreams: { studio: studio(2) },
  models: [
    { ...common, id: "narrow", upstream: "studio", maxConcurrent: 1, default: true },
    { ...common, id: "wide", upstream: "studio" },
  ],
});

/** Milliseconds until the next reading of a line begins at the latest. */
const untilNextLookMs = lineLookMs + maxLookPauseMs;

/** The duration of a completed job in ms. */
const tookOf = ({ startTime, completeTime }: Job) =>
  completeTime && startTime ? timestampMs(completeTime) - timestampMs(startTime) : 0;
/** The estimated start of a waiting job. */
const startOf = ({ estimatedStartTime: at }: Job) => (at ? timestampMs(at) : 0);

/** The rules for the place in the queue that callers see, on any database. */
export function queuePlacesContract(createWorld: typeof createJobsWorld): void {
  const open = worldsOf(createWorld);

  describe("the place of a waiting job", () => {
    test("minds the turns of accounts, moves up, and goes when it is claimed", async () => {
      const world = await open({ workers: { image: 1 } });
      await world.fund(100n, bob);
      const { media } = world.peers;
      const gate = Promise.withResolvers<void>();
      world.upstream.behave(gated(gate.promise));
      const begun = (await world.submit()).job;
      const isRunning = async () => (await world.get(begun.jobId)).status === JobStatus.RUNNING;
      await until("the first job to run", isRunning);
      const first = (await world.submit()).job;
      // Jobs of the same millisecond would share a place.
      world.clock.jump(5);
      const next = (await world.submit()).job;
      world.clock.jump(5);
      const other = (await world.submit(undefined, { principal: bob })).job;
      world.clock.jump(untilNextLookMs);
      const placeOf = async ({ jobId }: Job, principal = alice) =>
        (await world.get(jobId, principal)).queuePosition;
      // Bob's job came last, but he runs none.
      expect([await placeOf(first), await placeOf(next), await placeOf(other, bob)]).toEqual([
        ...[2, 3, 1],
      ]);
      expect((await world.get(begun.jobId)).queuePosition).toBeUndefined();
      const page = await media.listJobs({}, as(alice));
      expect(page.jobs.map((job) => job.queuePosition)).toEqual([3, 2, undefined]);
      // No job was completed yet, so the duration of a job is unknown.
      expect((await world.get(first.jobId)).estimatedStartTime).toBeUndefined();

      const seen: (number | undefined)[] = [];
      const watching = (async () => {
        for await (const { job } of media.watchJob({ jobId: next.jobId }, as(alice))) {
          if (job?.status === JobStatus.QUEUED) seen.push(job.queuePosition);
          if (job?.status === JobStatus.COMPLETED) return job;
        }
        return undefined;
      })();
      await until("the place as it stands", () => seen.length === 1);
      await world.cancel(first.jobId);
      world.clock.jump(untilNextLookMs);
      await until("the next place", () => seen.length === 2);
      expect(seen).toEqual([3, 2]);
      gate.resolve();
      const done = await watching;
      expect(done?.queuePosition).toBeUndefined();
      expect(done?.estimatedStartTime).toBeUndefined();
    });

    test("is that of its own upstream's line, and so is the estimate", async () => {
      const gates = { slow: Promise.withResolvers<void>(), quick: Promise.withResolvers<void>() };
      const asked = { slow: 0, quick: 0 };
      const world = await open({
        catalog: twoImageModels,
        upstream: scriptedUpstream((task) => {
          const name = task.upstream.name as keyof typeof gates;
          asked[name]++;
          return gated(gates[name].promise)(task);
        }),
      });
      const submit = async (model: keyof typeof gates) => {
        // Jobs of the same millisecond would share a place.
        world.clock.jump(5);
        return (await world.submit({ model, prompt: "p" })).job;
      };
      const lastsMs = { slow: 100_000, quick: 10_000 };
      const tookMs = { slow: 0, quick: 0 };
      for (const model of ["slow", "quick"] as const) {
        const before = asked[model];
        const { jobId } = await submit(model);
        await until("it to run", () => asked[model] > before);
        world.clock.jump(lastsMs[model]);
        gates[model].resolve();
        tookMs[model] = tookOf(await world.ended(jobId));
        expect(tookMs[model]).toBeGreaterThanOrEqual(lastsMs[model]);
        gates[model] = Promise.withResolvers();
      }
      const running = { slow: asked.slow, quick: asked.quick };
      await submit("slow");
      await submit("quick");
      await until("both to run", () => asked.slow > running.slow && asked.quick > running.quick);
      const waiting = [await submit("slow"), await submit("slow"), await submit("quick")];
      // Longer than the time for which measured durations are cached.
      world.clock.jump(20_000);
      const before = world.clock.now();
      const seen = [];
      for (const { jobId } of waiting) seen.push(await world.get(jobId));
      expect(seen.map(({ queuePosition }) => queuePosition)).toEqual([1, 2, 1]);
      const after = world.clock.now();
      const [slow = 0, slower = 0, quick = 0] = seen.map(startOf);
      for (const [at, turns, model] of [
        [slow, 1, "slow"],
        [slower, 2, "slow"],
        [quick, 1, "quick"],
      ] as const) {
        expect(at).toBeGreaterThanOrEqual(before + turns * tookMs[model]);
        expect(at).toBeLessThanOrEqual(after + turns * tookMs[model]);
      }
      for (const { resolve } of Object.values(gates)) resolve();
      for (const { jobId } of waiting) await world.ended(jobId);
    });

    test("is that of its model's line where the model has no place left", async () => {
      const gate = Promise.withResolvers<void>();
      const world = await open({
        catalog: narrowModel,
        upstream: scriptedUpstream(gated(gate.promise)),
      });
      const submit = async (model: string) => {
        world.clock.jump(5);
        return (await world.submit({ model, prompt: "p" })).job;
      };
      await submit("narrow");
      await until("it to run", () => world.upstream.tasks.length === 1);
      const before = [await submit("narrow"), await submit("narrow")];
      await submit("wide");
      await until("the other model to run", () => world.upstream.tasks.length === 2);
      const behind = await submit("wide");
      world.clock.jump(untilNextLookMs);
      const placeOf = async ({ jobId }: Job) => (await world.get(jobId)).queuePosition;
      expect([await placeOf(before[0] as Job), await placeOf(before[1] as Job)]).toEqual([1, 2]);
      // No job of the narrow model comes before it, because those wait for a place of their model.
      expect(await placeOf(behind)).toBe(1);
      gate.resolve();
      for (const { jobId } of [...before, behind]) await world.ended(jobId);
    });

    test("comes with an estimate by how long completed jobs of its line took", async () => {
      const world = await open({ workers: { image: 1 } });
      const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
      world.upstream.behave(gated(gates[0].promise));
      const measured = (await world.submit()).job;
      await until("a job to run", () => world.upstream.tasks.length === 1);
      world.clock.jump(20_000);
      world.upstream.behave(gated(gates[1].promise));
      gates[0].resolve();
      await world.ended(measured.jobId);
      await world.submit();
      await until("another to run", () => world.upstream.tasks.length === 2);
      await world.submit();
      world.clock.jump(5);
      const second = (await world.submit()).job;
      world.clock.jump(20_000);
      const tookMs = tookOf(await world.get(measured.jobId));
      expect(tookMs).toBeGreaterThanOrEqual(20_000);
      const before = world.clock.now();
      const job = await world.get(second.jobId);
      expect(job.queuePosition).toBe(2);
      const at = startOf(job);
      expect(at).toBeGreaterThanOrEqual(before - lineLookMs + 2 * tookMs);
      expect(at).toBeLessThanOrEqual(world.clock.now() + 2 * tookMs);
      world.upstream.behave(succeed);
      gates[1].resolve();
      await world.ended(second.jobId);
    });
  });
}
