import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import type { WakeQueue } from "#kit/queue/port.ts";
import {
  FileArea,
  type Job,
  JobKind,
  JobStatus,
} from "#proto/genmesh/media/v1/media_service_pb.ts";
import { collectIntervalMs, minCollectAgeMs } from "../../services/media/limits.ts";
import { heldPauses, jumpClock } from "../support/jump-clock.ts";
import { until } from "../support/until.ts";
import { worldsOf } from "./jobs.opening.ts";
import { output, query } from "./jobs.shapes.ts";
import { fail, gated, hang, scriptedUpstream, succeed } from "./jobs.upstream.ts";
import {
  alice,
  alicesOther,
  as,
  bob,
  type createJobsWorld,
  image,
  type JobsWorld,
  music,
  video,
} from "./jobs.world.ts";

const dayMs = 24 * 3_600_000;
const refused = (reason: ErrorReason) => ({ reason });
const idsOf = (jobs: readonly Job[]) => jobs.map(({ jobId }) => jobId);

/** The rules for the routes of jobs, on any database. */
export function jobRoutesContract(createWorld: typeof createJobsWorld): void {
  const open = worldsOf(createWorld);

  describe("reading a job", () => {
    test("is for the key that made it, under its own kind's path", async () => {
      const world = await open();
      const { job } = await world.submit();
      const { media } = world.peers;
      const none = refused(ErrorReason.JOB_NOT_FOUND);
      const { jobId } = job;
      const own = await media.getJob({ jobId, kind: JobKind.IMAGE }, as(alice));
      expect(own.job?.jobId).toBe(jobId);
      await expect(media.getJob({ jobId, kind: JobKind.VIDEO }, as(alice))).rejects.toMatchObject(
        none,
      );
      for (const other of [alicesOther, bob]) {
        await expect(media.getJob({ jobId }, as(other))).rejects.toMatchObject(none);
        await expect(
          (async () => {
            for await (const _ of media.watchJob({ jobId }, as(other)));
          })(),
        ).rejects.toMatchObject(none);
      }
      await expect(media.getJob({ jobId: "job_none" }, as(alice))).rejects.toMatchObject(none);
      // A reader of all keys' jobs reads those of its own account.
      const all = { jobId, allKeys: true };
      expect((await media.getJob(all, as(alicesOther))).job?.keyId).toBe(alice.keyId);
      await expect(media.getJob(all, as(bob))).rejects.toMatchObject(none);
    });

    test("lists the key's own, newest first, by pages, state and kind", async () => {
      const world = await open();
      const made: string[] = [];
      for (let i = 0; i < 5; i++) {
        world.upstream.behave(i === 1 ? fail("failed") : succeed);
        const options = { kind: i === 2 ? JobKind.MUSIC : JobKind.IMAGE };
        const { job } = await world.submit(i === 2 ? music() : image(), options);
        await world.ended(job.jobId);
        made.unshift(job.jobId);
        world.clock.jump(5);
      }
      await world.submit(image(), { principal: alicesOther });
      const { media } = world.peers;
      const pages: string[][] = [];
      let pageToken = "";
      do {
        const page = await media.listJobs({ pageSize: 2, pageToken }, as(alice));
        pages.push(idsOf(page.jobs));
        pageToken = page.nextPageToken;
      } while (pageToken !== "");
      expect(pages).toEqual([made.slice(0, 2), made.slice(2, 4), made.slice(4)]);
      const failed = await media.listJobs({ status: JobStatus.FAILED }, as(alice));
      expect(idsOf(failed.jobs)).toEqual([made[3]]);
      const clips = await media.listJobs({ kind: JobKind.MUSIC }, as(alice));
      expect(idsOf(clips.jobs)).toEqual([made[2]]);
      const { jobs } = await world.admin.media.listAccountJobs({ accountId: alice.accountId });
      expect(jobs).toHaveLength(6);
    });

    test("refuses pages that there are not", async () => {
      const { peers, admin } = await open();
      await expect(
        peers.media.listJobs({ pageToken: "nonsense" }, as(alice)),
      ).rejects.toMatchObject({
        reason: ErrorReason.INVALID_VALUE,
        param: "cursor",
      });
      const invalid = refused(ErrorReason.INVALID_ARGUMENT);
      await expect(peers.media.listJobs({ pageSize: 101 }, as(alice))).rejects.toMatchObject(
        invalid,
      );
      await expect(admin.media.listAccountJobs({ pageToken: "nonsense" })).rejects.toMatchObject(
        invalid,
      );
      const forbidden = refused(ErrorReason.CALLER_FORBIDDEN);
      const asked = { accountId: alice.accountId };
      await expect(peers.media.listAccountJobs(asked, as(alice))).rejects.toMatchObject(forbidden);
    });
  });

  describe("a watch", () => {
    test("sees each change at once, and ends with the job", async () => {
      const world = await open({ workerCount: 0 });
      const { job } = await world.submit();
      const seen: JobStatus[] = [];
      const watching = (async () => {
        for await (const change of world.peers.media.watchJob({ jobId: job.jobId }, as(alice))) {
          if (change.job) seen.push(change.job.status);
        }
      })();
      await until("the first state", () => seen.length === 1);
      // Another process does the work, and the watch reads the store.
      const gate = Promise.withResolvers<void>();
      const upstream = scriptedUpstream(gated(gate.promise));
      await open({ folder: world.folder, clock: world.clock, withApi: false, upstream });
      await until("the second state", () => seen.length === 2);
      gate.resolve();
      await watching;
      expect(seen).toEqual([JobStatus.QUEUED, JobStatus.RUNNING, JobStatus.COMPLETED]);
    });

    test("sends a heartbeat in silence, and is left at once", async () => {
      const world = await open({ workerCount: 0 });
      const { job } = await world.submit();
      const stop = new AbortController();
      let heartbeats = 0;
      const watching = (async () => {
        const call = { ...as(alice), signal: stop.signal };
        for await (const change of world.peers.media.watchJob({ jobId: job.jobId }, call)) {
          if (!change.job) heartbeats++;
        }
      })();
      watching.catch(() => {});
      for (let i = 0; i < 2; i++) {
        // The clock is moved several times, because a slow store delays the start of the watch's wait.
        const isHeard = () => heartbeats > i || world.clock.jump(15_500);
        await until("a heartbeat", isHeard, { everyMs: 100 });
      }
      stop.abort();
      await expect(watching).rejects.toThrow();
    });

    test("is ended by a drain", async () => {
      const world = await open({ workerCount: 0 });
      const { job } = await world.submit();
      const watch = world.peers.media.watchJob({ jobId: job.jobId }, as(alice));
      const changes = watch[Symbol.asyncIterator]();
      await changes.next();
      const unavailable = refused(ErrorReason.SERVICE_UNAVAILABLE);
      const ended = expect(changes.next()).rejects.toMatchObject(unavailable);
      await world.media.drain(AbortSignal.timeout(1_000));
      await ended;
    });
  });

  describe("a retry by the operator", () => {
    test("makes the failed job's request a new job, once for an operation id", async () => {
      const world = await open();
      world.upstream.behave(fail("failed"));
      const { job } = await world.submit(video({ size: "854x480", resolution: undefined }), {
        kind: JobKind.VIDEO,
        key: "mine",
      });
      await world.ended(job.jobId);
      world.upstream.behave(succeed);
      const { jobId } = job;
      const retry = (operationId: string) => world.admin.media.retryJob({ jobId, operationId });
      const again = await Promise.all([retry("op"), retry("op"), retry("op")]);
      const ids = new Set(again.map((answer) => answer.job?.jobId));
      expect(ids.size).toBe(1);
      const [made] = again;
      expect(made?.job).toMatchObject({
        retryOf: jobId,
        creditsReserved: 45n,
        resolution: "480p",
        aspectRatio: "16:9",
        mode: "t2v",
      });
      const done = await world.ended(made?.job?.jobId ?? "");
      expect(done.status).toBe(JobStatus.COMPLETED);
      expect(await world.credits()).toMatchObject({ reserved: 0n, spent: 45n });
      expect((await retry("")).job?.jobId).not.toBe((await retry("")).job?.jobId);
    });

    test("brings the references again, as the files that they became", async () => {
      const world = await open();
      const png = (await import("sharp")).default({
        create: { width: 8, height: 8, channels: 3, background: "#123" },
      });
      const image_url = `data:image/png;base64,${(await png.png().toBuffer()).toString("base64")}`;
      world.upstream.behave(fail("failed"));
      const { job } = await world.submit(video({ input_reference: { image_url } }), {
        kind: JobKind.VIDEO,
      });
      await world.ended(job.jobId);
      world.upstream.behave(succeed);
      const again = await world.admin.media.retryJob({ jobId: job.jobId, operationId: "op" });
      expect(again.job?.mode).toBe("i2v");
      await world.ended(again.job?.jobId ?? "");
      expect(world.upstream.tasks.at(-1)?.references).toHaveLength(1);
    });

    test("is refused where there is nothing to retry, or nothing to pay with", async () => {
      const world = await open();
      const { job } = await world.submit();
      await world.ended(job.jobId);
      const { media } = world.admin;
      const cases: [string, string, ErrorReason][] = [
        ["job_none", "op", ErrorReason.JOB_NOT_FOUND],
        [job.jobId, "op", ErrorReason.OPERATION_CONFLICT],
        [job.jobId, "o".repeat(129), ErrorReason.INVALID_ARGUMENT],
      ];
      for (const [jobId, operationId, reason] of cases) {
        await expect(media.retryJob({ jobId, operationId })).rejects.toMatchObject(refused(reason));
      }
      world.upstream.behave(fail("failed"));
      const one = await world.submit();
      const two = await world.submit();
      await world.ended(one.job.jobId);
      await world.ended(two.job.jobId);
      await media.retryJob({ jobId: one.job.jobId, operationId: "op" });
      await expect(
        media.retryJob({ jobId: two.job.jobId, operationId: "op" }),
      ).rejects.toMatchObject(refused(ErrorReason.OPERATION_MISMATCH));
    });
  });

  test("an inspection shows who pays, and the history", async () => {
    const world = await open();
    const { job } = await world.submit();
    await world.ended(job.jobId);
    const seen = await world.admin.media.inspectJob({ jobId: job.jobId });
    expect(seen).toMatchObject({ ...alice, holdId: job.jobId, attempts: 1 });
    expect(seen.events.map(({ state }) => state)).toEqual([
      "reserving",
      "queued",
      "running",
      "settling",
      "completed",
    ]);
  });

  describe("what becomes of a hold", () => {
    const ask = async (world: JobsWorld, holdId: string, accountId = alice.accountId) =>
      (await world.peers.media.resolveHold({ holdId, accountId })).verdict?.verdict;

    test("is what its job says, at every step", async () => {
      const world = await open({ workerCount: 0 });
      const now = world.clock.now();
      const { job } = await world.submit();
      const { jobId } = job;
      const deadline = (await world.store.find(jobId))?.deadline ?? 0;
      expect(await ask(world, jobId)).toEqual({
        case: "keepUntil",
        value: timestampFromMs(deadline),
      });
      const release = { case: "release", value: true };
      expect(await ask(world, jobId, bob.accountId)).toEqual(release);
      expect(await ask(world, "job_none")).toEqual(release);
      await world.store.claim(query({ now }));
      expect((await ask(world, jobId))?.case).toBe("keepUntil");
      await world.store.apply(jobId, { kind: "win", fence: 1, outputs: [output], now });
      expect(await ask(world, jobId)).toEqual({ case: "settleAmount", value: 5n });
      await world.ended(jobId);
      expect(await ask(world, jobId)).toEqual({ case: "settleAmount", value: 5n });
    });

    test("of a job that is being written down is kept, of one that has failed released", async () => {
      const world = await open();
      world.upstream.behave(fail("failed"));
      const { job } = await world.submit();
      await world.ended(job.jobId);
      expect(await ask(world, job.jobId)).toEqual({ case: "release", value: true });
    });
  });

  describe("an output", () => {
    test("is found by the key that made it, in its own area, while its job is kept", async () => {
      const world = await open();
      const { job } = await world.submit();
      const [output] = (await world.ended(job.jobId)).outputs;
      const { media } = world.peers;
      const name = { area: FileArea.IMAGES, parentId: job.jobId, fileId: output?.fileId ?? "" };
      const found = await media.locateFile(name, as(alice));
      expect(found).toMatchObject({ mimeType: "image/png", sha256: output?.sha256 });
      const blob = await world.blobs.openRead(found.blobKey);
      expect(Buffer.concat(await blob.toArray()).toString()).toBe(`${job.jobId} 0`);
      const none = refused(ErrorReason.FILE_NOT_FOUND);
      for (const [other, principal] of [
        [name, alicesOther],
        [name, bob],
        [{ ...name, area: FileArea.VIDEOS }, alice],
        [{ ...name, fileId: "file_none" }, alice],
        [{ ...name, parentId: "job_none" }, alice],
      ] as const) {
        await expect(media.locateFile(other, as(principal))).rejects.toMatchObject(none);
      }
      world.clock.jump(31 * dayMs);
      await expect(media.locateFile(name, as(alice))).rejects.toMatchObject(none);
    });
  });

  describe("retention", () => {
    const blobsOf = async (world: JobsWorld) => {
      const keys: string[] = [];
      for await (const { key } of world.blobs.list()) keys.push(key);
      return keys;
    };

    test("removes a job, its outputs and its idempotency key when their time is over", async () => {
      const world = await open({ retentionDays: 2 });
      const { job } = await world.submit(image({ n: 3 }), { key: "k" });
      const done = await world.ended(job.jobId);
      expect(done.expireTime).toBeDefined();
      expect(await blobsOf(world)).toHaveLength(3);
      world.clock.jump(2 * dayMs);
      await until("the job to go", async () => !(await world.store.find(job.jobId)));
      await until("its outputs to go", async () => (await blobsOf(world)).length === 0);
      expect((await world.submit(image({ n: 3 }), { key: "k" })).replayed).toBe(false);
    });

    test("of 0 days keeps for ever", async () => {
      const world = await open({ retentionDays: 0 });
      const { job } = await world.submit();
      expect((await world.ended(job.jobId)).expireTime).toBeUndefined();
      world.clock.jump(1_000 * dayMs);
      await new Promise((go) => setTimeout(go, 50));
      expect((await world.get(job.jobId)).status).toBe(JobStatus.COMPLETED);
    });

    test("collects what no job needs, and nothing that is young, running or referenced", async () => {
      const { clock, turn } = heldPauses(jumpClock(), collectIntervalMs);
      const world = await open({ clock });
      const { job: kept } = await world.submit();
      await world.ended(kept.jobId);
      world.upstream.behave(hang);
      const { job: broken } = await world.submit();
      await until("it to be begun", () => world.upstream.tasks.length === 2);
      // From a worker that died after it had stored this.
      await world.blobs.put(`outputs/${broken.jobId}/1-7`, chunks("half a job"));
      await world.blobs.put("outputs/job_gone/1-0", chunks("orphan"));
      await world.blobs.put("elsewhere/x", chunks("not ours"));
      world.clock.jump(minCollectAgeMs - 60_000);
      await turn();
      expect(await blobsOf(world)).toHaveLength(4);
      await world.ended(broken.jobId);
      world.clock.jump(60_000);
      await turn();
      const left = await blobsOf(world);
      expect(left).toHaveLength(2);
      expect(left).toContain("elsewhere/x");
      expect(left.some((key) => key.includes(kept.jobId))).toBe(true);
      expect(left.some((key) => key.includes(broken.jobId))).toBe(false);
    });
  });

  describe("without a queue", () => {
    const deaf = (): WakeQueue => ({
      publish: () => Promise.reject(new Error("the queue is away")),
      subscribe: () => ({
        next: () => Promise.reject(new Error("the queue is away")),
        async [Symbol.asyncDispose]() {},
      }),
      async [Symbol.asyncDispose]() {},
    });

    test("every accepted job is done all the same", async () => {
      const world = await open({ queue: deaf() });
      const jobs = await Promise.all(Array.from({ length: 6 }, () => world.submit()));
      world.clock.jump(2_500);
      for (const { job } of jobs) {
        expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
      }
    });
  });
}

async function* chunks(text: string): AsyncIterable<Uint8Array> {
  yield Buffer.from(text);
}
