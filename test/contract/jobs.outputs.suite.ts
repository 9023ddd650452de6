import { describe, expect, test } from "vitest";
import { JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { GenerationError, type GenerationTask } from "../../services/upstreams/media/port.ts";
import { until } from "../support/until.ts";
import { attemptsLost, worldsOf } from "./jobs.opening.ts";
import { hang, storeOne, succeed } from "./jobs.upstream.ts";
import { alice, as, type createJobsWorld, image, type JobsWorld } from "./jobs.world.ts";

/** The rules for outputs that an attempt has stored and that its job does not get, on any stores. */
export function storedOutputsContract(createWorld: typeof createJobsWorld): void {
  const open = worldsOf(createWorld);
  const stored = async ({ blobs }: JobsWorld) => {
    const keys: string[] = [];
    for await (const { key } of blobs.list("outputs/")) keys.push(key);
    return keys.sort();
  };
  /** Far below the hour after which the collection would find it. */
  const gone = (world: JobsWorld) =>
    until("what was stored to be removed", async () => (await stored(world)).length === 0, {
      withinMs: 60_000,
    });
  const storeSome = async (task: GenerationTask, count: number) => {
    for (let index = 0; index < count; index++) await storeOne(task, `picture ${index}`);
  };
  /** The keys of a job's outputs. Each can be read. */
  const outputsOf = async (world: JobsWorld, jobId: string) => {
    const { outputs = [] } = (await world.store.find(jobId)) ?? {};
    for (const { blobKey, sizeBytes } of outputs) {
      expect(await world.blobs.stat(blobKey)).toMatchObject({ sizeBytes });
    }
    return outputs.map(({ blobKey }) => blobKey).sort();
  };

  describe("what an attempt has stored goes at once where the job does not get it:", () => {
    test("its caller cancels and deletes the job", async () => {
      const world = await open();
      world.upstream.behave(async (task) => {
        await storeSome(task, 6);
        return hang(task);
      });
      const { job } = await world.submit(image({ n: 10 }));
      await until("six of ten pictures", async () => (await stored(world)).length === 6);
      await world.cancel(job.jobId);
      await world.peers.media.deleteJob({ jobId: job.jobId }, as(alice));
      await gone(world);
    });

    test("the generation fails for good", async () => {
      const world = await open();
      world.upstream.behave(async (task) => {
        await storeSome(task, 2);
        throw new GenerationError("failed", "scripted");
      });
      const { job } = await world.submit(image({ n: 3 }));
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.FAILED);
      await gone(world);
    });

    test("the upstream is late with one more", async () => {
      const world = await open();
      const late = Promise.withResolvers<unknown>();
      world.upstream.behave(async (task) => {
        await storeSome(task, 1);
        // No attempt waits for this output. It is stored after the attempt has ended.
        const more = until("the end", async () => (await stored(world)).length === 0);
        more.then(() => storeOne(task, "late")).then(late.reject, late.resolve);
        throw new GenerationError("failed", "scripted");
      });
      const { job } = await world.submit(image({ n: 3 }));
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.FAILED);
      expect(await late.promise).toBeInstanceOf(Error);
      expect(await stored(world)).toEqual([]);
    });

    test("another attempt makes them anew, and keeps its own", async () => {
      const world = await open();
      world.upstream.behave(async (task) => {
        await storeSome(task, 2);
        throw new GenerationError("unknown", "away");
      });
      const { job } = await world.submit(image({ n: 2 }));
      await attemptsLost(world, job.jobId, 1);
      await gone(world);
      world.upstream.behave(succeed);
      world.clock.jump(10_000);
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
      expect(await outputsOf(world, job.jobId)).toHaveLength(2);
      expect(await stored(world)).toEqual(await outputsOf(world, job.jobId));
    });

    test("another worker has the job meanwhile, and completes it first", async () => {
      const world = await open();
      const gate = Promise.withResolvers<void>();
      const isCompleted = async (jobId: string) =>
        (await world.store.find(jobId))?.state === "completed";
      let attempts = 0;
      world.upstream.behave(async (task) => {
        if (attempts++ > 0) return succeed(task);
        await storeSome(task, 2);
        await gate.promise;
        throw task.signal.reason;
      });
      const { job } = await world.submit(image({ n: 2 }));
      await until("two pictures", async () => (await stored(world)).length === 2);
      // Like a pause of this worker that is longer than its lease.
      const thief = { kind: "image", owner: "thief", fullUpstreams: [], modelLimits: new Map() };
      await world.store.claim({ ...thief, kind: "image", now: world.clock.now() + 31_000 });
      world.clock.jump(62_000);
      await until("the end", () => isCompleted(job.jobId), { withinMs: 60_000 });
      const kept = await outputsOf(world, job.jobId);
      expect(kept).toHaveLength(2);
      expect(await stored(world)).toHaveLength(4);
      gate.resolve();
      await until("the loser's to be removed", async () => (await stored(world)).length === 2);
      expect(await stored(world)).toEqual(kept);
    });

    test("only some of them are the job's", async () => {
      const world = await open();
      world.upstream.behave(async (task) => {
        await storeOne(task, "not handed in");
        return [await storeOne(task, "handed in")];
      });
      const { job } = await world.submit(image({ n: 2 }));
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
      await until("the other one to go", async () => (await stored(world)).length === 1);
      expect(await stored(world)).toEqual(await outputsOf(world, job.jobId));
    });
  });
}
