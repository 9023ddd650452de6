import { inspect } from "node:util";
import sharp from "sharp";
import { afterEach, describe, expect, test } from "vitest";
import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import { JobKind, JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { until } from "../support/until.ts";
import { gated, scriptedUpstream, succeed } from "./jobs.upstream.ts";
import {
  alice,
  alicesOther,
  as,
  bob,
  type createJobsWorld,
  image,
  type JobsWorld,
  type JobsWorldOptions,
  music,
  video,
} from "./jobs.world.ts";

/** The rules for submitting, on any database. `many` is a number of jobs that can be submitted within a few seconds. */
export function submissionContract(createWorld: typeof createJobsWorld, many: number): void {
  const worlds: JobsWorld[] = [];
  afterEach(async () => {
    for (const one of worlds.splice(0)) await one[Symbol.asyncDispose]();
  });
  async function open(options?: JobsWorldOptions): Promise<JobsWorld> {
    const world = await createWorld(options);
    worlds.push(world);
    return world;
  }
  const refused = (reason: ErrorReason) => ({ reason });
  const tasksOf = (world: JobsWorld) =>
    (world.upstream as ReturnType<typeof scriptedUpstream>).tasks;
  async function png(size = 64): Promise<Buffer> {
    const create = { width: size, height: size, channels: 3, background: "#469" } as const;
    return sharp({ create }).png().toBuffer();
  }

  describe("a submission", () => {
    test("is accepted, done, charged, and shows its outputs", async () => {
      const world = await open();
      await world.fund(1_000n);
      const { job, replayed } = await world.submit(image({ n: 2, aspectRatio: "16:9" }));
      expect(replayed).toBe(false);
      expect(job).toMatchObject({ kind: JobKind.IMAGE, creditsReserved: 10n, outputCount: 2 });
      expect(job.creditsCharged).toBeUndefined();
      const done = await world.ended(job.jobId);
      expect(done).toMatchObject({
        status: JobStatus.COMPLETED,
        progress: 100,
        creditsCharged: 10n,
        aspectRatio: "16:9",
        model: "image-1",
        modelName: "Image One",
      });
      expect(done.outputs).toHaveLength(2);
      expect(done.expireTime).toBeDefined();
      expect(await world.credits()).toEqual({ reserved: 0n, spent: 10n, spendable: 990n });
    });

    test("of a video and of music say what they are", async () => {
      const world = await open();
      await world.fund(1_000n);
      const one = await world.submit(video({ resolution: "720p" }), { kind: JobKind.VIDEO });
      expect(one.job).toMatchObject({
        mode: "t2v",
        durationSeconds: 6,
        resolution: "720p",
        aspectRatio: "auto",
        creditsReserved: 90n,
      });
      const two = await world.submit(music(), { kind: JobKind.MUSIC });
      expect(two.job).toMatchObject({ mode: "instrumental", creditsReserved: 20n });
      await world.ended(one.job.jobId);
      await world.ended(two.job.jobId);
      expect(await world.credits()).toEqual({ reserved: 0n, spent: 110n, spendable: 890n });
    });

    test("that is invalid, or may not be, costs nothing and leaves nothing", async () => {
      const world = await open();
      await world.fund(1_000n);
      const refusals: [unknown, Parameters<JobsWorld["submit"]>[1], ErrorReason][] = [
        ["{", {}, ErrorReason.INVALID_JSON],
        [image({ prompt: "" }), {}, ErrorReason.MISSING_REQUIRED_PARAMETER],
        [image({ n: 11 }), {}, ErrorReason.INVALID_VALUE],
        [image({ model: "svc-video-1-5" }), {}, ErrorReason.MODEL_NOT_FOUND],
        [video(), { kind: JobKind.MUSIC }, ErrorReason.MODEL_NOT_FOUND],
        [image(), { key: "" }, ErrorReason.INVALID_IDEMPOTENCY_KEY],
        [image(), { key: "k".repeat(256) }, ErrorReason.INVALID_IDEMPOTENCY_KEY],
        [image(), { admission: { allowedModels: ["other"] } }, ErrorReason.PERMISSION_DENIED],
        [
          image(),
          { admission: { refuseWith: ErrorReason.RATE_LIMIT_EXCEEDED } },
          ErrorReason.RATE_LIMIT_EXCEEDED,
        ],
        [image({ referenceFileIds: ["file_none"] }), {}, ErrorReason.REFERENCE_NOT_FOUND],
      ];
      for (const [body, options, reason] of refusals) {
        await expect(world.submit(body, options)).rejects.toMatchObject(refused(reason));
      }
      expect((await world.peers.media.listJobs({}, as(alice))).jobs).toEqual([]);
      expect(await world.credits()).toEqual({ reserved: 0n, spent: 0n, spendable: 1_000n });
    });

    test("without credits is refused, and its idempotency key is free again", async () => {
      const world = await open();
      const key = { key: "once" };
      const poor = refused(ErrorReason.INSUFFICIENT_CREDITS);
      await expect(world.submit(image(), key)).rejects.toMatchObject(poor);
      await world.fund(5n);
      const { job, replayed } = await world.submit(image({ prompt: "another" }), key);
      expect(replayed).toBe(false);
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
    });

    test("brings its references in, and the worker gets their bytes", async () => {
      const world = await open();
      await world.fund(1_000n);
      const bytes = await png();
      const image_url = `data:image/png;base64,${bytes.toString("base64")}`;
      const body = video({ input_reference: { image_url } });
      const { job } = await world.submit(body, { kind: JobKind.VIDEO, key: "with-image" });
      expect(job.mode).toBe("i2v");
      await world.ended(job.jobId);
      const [task] = tasksOf(world);
      expect(task?.references).toHaveLength(1);
      const opened = await task?.references[0]?.open();
      expect(Buffer.concat((await opened?.toArray()) ?? [])).toEqual(bytes);
      // The job's document has no bytes of files.
      const stored = inspect(await world.store.find(job.jobId), { depth: null });
      expect(stored).not.toContain(image_url.slice(40, 80));
      const files = (await world.peers.media.listFiles({}, as(alice))).files;
      expect(files).toHaveLength(1);
    });

    test("with a broken reference is refused at its field, and lets go of the other one", async () => {
      const world = await open({ workerCount: 0 });
      await world.fund(1_000n);
      const dataUri = (bytes: Buffer) => `data:image/png;base64,${bytes.toString("base64")}`;
      const good = { image_url: dataUri(await png()) };
      const made = await world.submit(video({ input_reference: good }), { kind: JobKind.VIDEO });
      await world.cancel(made.job.jobId);
      const [file] = (await world.peers.media.listFiles({}, as(alice))).files;
      const input_reference = { image_url: dataUri(Buffer.from("no image")) };
      const referenceFileIds = [file?.fileId];
      const body = video({ model: "svc-video-1-5", input_reference, referenceFileIds });
      await expect(world.submit(body, { kind: JobKind.VIDEO })).rejects.toMatchObject({
        reason: ErrorReason.INVALID_REFERENCE_IMAGE,
      });
      await world.peers.media.deleteFile({ fileId: file?.fileId ?? "" }, as(alice));
      await until("its bytes to go", async () => {
        for await (const _ of world.blobs.list("uploads/")) return false;
        return true;
      });
    });

    test("with a broken reference is refused at its field, and nothing stays", async () => {
      const world = await open();
      await world.fund(1_000n);
      const image_url = `data:image/png;base64,${Buffer.from("no image").toString("base64")}`;
      const body = video({ input_reference: { image_url } });
      const options = { kind: JobKind.VIDEO, key: "broken" };
      const broken = {
        reason: ErrorReason.INVALID_REFERENCE_IMAGE,
        param: "input_reference.image_url",
      };
      await expect(world.submit(body, options)).rejects.toMatchObject(broken);
      expect((await world.credits()).spendable).toBe(1_000n);
      expect((await world.peers.media.listFiles({}, as(alice))).files).toEqual([]);
      expect((await world.submit(video(), options)).replayed).toBe(false);
    });
  });

  describe("an idempotency key", () => {
    test("names one job, held once and made once, however many ask at the same time", async () => {
      const world = await open();
      await world.fund(1_000n);
      const { answers, refusals } = await submittedAtOnce(50, () =>
        world.submit(image(), { key: "fifty" }),
      );
      expect(new Set(answers.map(({ job }) => job.jobId)).size).toBe(1);
      // The first request's own answer may be one of those that were refused.
      const firsts = answers.filter(({ replayed }) => !replayed).length;
      expect([1, ...(refusals > 0 ? [0] : [])]).toContain(firsts);
      await world.ended(answers[0]?.job.jobId ?? "");
      expect(tasksOf(world)).toHaveLength(1);
      expect(await world.credits()).toEqual({ reserved: 0n, spent: 5n, spendable: 995n });
      const { entries } = await world.admin.billing.listEntries({ accountId: alice.accountId });
      expect(entries.filter(({ holdId }) => holdId !== "")).toHaveLength(2);
    });

    test("gives the job as it stands, though price, model or limits have changed, or the edge refuses", async () => {
      const world = await open();
      await world.fund(5n);
      const first = await world.submit(image(), { key: "again" });
      await world.ended(first.job.jobId);
      const again = await world.submit(`{ "prompt":"a lighthouse" , "model":"image-1"}`, {
        key: "again",
        admission: { refuseWith: ErrorReason.RATE_LIMIT_EXCEEDED, allowedModels: ["other"] },
      });
      expect(again).toMatchObject({ replayed: true, job: { jobId: first.job.jobId } });
      expect(again.job.status).toBe(JobStatus.COMPLETED);
    });

    test("with another body is refused, also where that has faults of its own", async () => {
      const world = await open();
      await world.fund(1_000n);
      await world.submit(image(), { key: "used" });
      const reused = refused(ErrorReason.IDEMPOTENCY_KEY_REUSED);
      for (const body of [image({ n: 2 }), image({ model: "none" }), {}, image({ n: 1 })]) {
        await expect(world.submit(body, { key: "used" })).rejects.toMatchObject(reused);
      }
    });

    test("counts for its key id and its route alone", async () => {
      const world = await open();
      await world.fund(1_000n);
      await world.fund(1_000n, bob);
      const key = "same";
      const jobs = [
        await world.submit(image(), { key }),
        await world.submit(image(), { key, principal: alicesOther }),
        await world.submit(image(), { key, principal: bob }),
        await world.submit(music(), { key, kind: JobKind.MUSIC }),
      ];
      expect(new Set(jobs.map(({ job }) => job.jobId)).size).toBe(4);
      expect(jobs.map(({ replayed }) => replayed)).toEqual([false, false, false, false]);
    });

    test("outlives the process", async () => {
      const gate = Promise.withResolvers<void>();
      const first = await createWorld({ upstream: scriptedUpstream(gated(gate.promise)) });
      const { folder } = first;
      await first.fund(1_000n);
      // The folder is removed with its world, so the second one works on it before.
      const { job } = await first.submit(image(), { key: "lasting" });
      const second = await createWorld({ folder, clock: first.clock, workerCount: 0 });
      const again = await second.submit(image(), { key: "lasting" });
      expect(again).toMatchObject({ replayed: true, job: { jobId: job.jobId } });
      await second[Symbol.asyncDispose]();
      gate.resolve();
      await first.ended(job.jobId);
      await first[Symbol.asyncDispose]();
    });

    test("of duplicates that bring references at the same time, imports once", async () => {
      const world = await open();
      await world.fund(1_000n);
      const image_url = `data:image/png;base64,${(await png()).toString("base64")}`;
      const body = video({ input_reference: { image_url } });
      const options = { kind: JobKind.VIDEO, key: "refs" };
      const { answers } = await submittedAtOnce(8, () => world.submit(body, options));
      expect(new Set(answers.map(({ job }) => job.jobId)).size).toBe(1);
      expect((await world.peers.media.listFiles({}, as(alice))).files).toHaveLength(1);
    });
  });

  describe("many at once", () => {
    test("200 submissions on a wallet that pays for 20: 20 are accepted, 180 refused, nothing is left", async () => {
      const world = await open({ workerCount: 0 });
      await world.fund(100n);
      const results = await Promise.allSettled(Array.from({ length: 200 }, () => world.submit()));
      const accepted = results.filter(({ status }) => status === "fulfilled");
      expect(accepted).toHaveLength(20);
      for (const result of results) {
        if (result.status === "fulfilled") continue;
        expect(isRefusal(result.reason, ErrorReason.INSUFFICIENT_CREDITS)).toBe(true);
      }
      expect(await world.credits()).toEqual({ reserved: 100n, spent: 0n, spendable: 0n });
      expect((await world.peers.media.listJobs({ pageSize: 100 }, as(alice))).jobs).toHaveLength(
        20,
      );
    });

    test(`${many} jobs of one account do not starve another's first`, async () => {
      const order: string[] = [];
      const upstream = scriptedUpstream(async (task) => {
        order.push(task.jobId);
        return succeed(task);
      });
      const waiting = await open({ workerCount: 0 });
      await waiting.fund(5_000n);
      await waiting.fund(10n, bob);
      for (let submitted = 0; submitted < many; submitted += 50) {
        await Promise.all(Array.from({ length: 50 }, () => waiting.submit()));
      }
      const first = await waiting.submit(image(), { principal: bob });
      const second = await waiting.submit(image(), { principal: bob });
      // A worker starts.
      const working = await open({
        folder: waiting.folder,
        clock: waiting.clock,
        upstream,
        withApi: false,
        workers: { image: 1 },
      });
      await waiting.ended(first.job.jobId, bob);
      await waiting.ended(second.job.jobId, bob);
      expect(order.indexOf(first.job.jobId)).toBeLessThanOrEqual(2);
      await working[Symbol.asyncDispose]();
      worlds.splice(worlds.indexOf(working), 1);
    });
  });
}

/** Submits like clients with an idempotency key. Where a busy store had no room in time, a request is repeated. */
async function submittedAtOnce<T>(
  count: number,
  submit: () => Promise<T>,
): Promise<{ answers: T[]; refusals: number }> {
  let refusals = 0;
  const one = async () => {
    for (;;) {
      try {
        return await submit();
      } catch (error) {
        if (!isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE)) throw error;
        refusals++;
      }
    }
  };
  const answers = await Promise.all(Array.from({ length: count }, one));
  return { answers, refusals };
}
