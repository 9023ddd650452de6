import { describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { FileArea, JobKind, JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { until } from "../support/until.ts";
import { worldsOf } from "./jobs.opening.ts";
import { fail, hang } from "./jobs.upstream.ts";
import {
  alice,
  alicesOther,
  as,
  bob,
  type createJobsWorld,
  image,
  type JobsWorld,
} from "./jobs.world.ts";

/** A real image of one pixel. */
const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const refused = (reason: ErrorReason) => ({ reason });
const none = refused(ErrorReason.JOB_NOT_FOUND);

/** The rules for a caller's deletion of a job, on any database. */
export function deleteContract(createWorld: typeof createJobsWorld): void {
  const open = worldsOf(createWorld);
  const remove = ({ peers }: JobsWorld, jobId: string, principal = alice) =>
    peers.media.deleteJob({ jobId }, as(principal));

  describe("a job that is deleted", () => {
    test("is gone with its outputs and its text; what it cost stays", async () => {
      const world = await open();
      const { media } = world.peers;
      const image_url = `data:image/png;base64,${pixel}`;
      const body = image({ prompt: "WORDS", input_reference: { image_url } });
      const { job } = await world.submit(body, { key: "k" });
      const { jobId } = job;
      const [output] = (await world.ended(jobId)).outputs;
      const paid = await world.credits();
      const fileId = output?.fileId ?? "";
      const place = { area: FileArea.IMAGES, parentId: jobId, fileId };
      const { blobKey } = await media.locateFile(place, as(alice));
      expect(await world.blobs.stat(blobKey)).toBeDefined();

      await remove(world, jobId);
      expect(await world.blobs.stat(blobKey)).toBeUndefined();
      for (const call of [
        () => world.get(jobId),
        () => world.cancel(jobId),
        () => remove(world, jobId),
        () => world.admin.media.inspectJob({ jobId }),
        () => world.admin.media.retryJob({ jobId }),
      ]) {
        await expect(call()).rejects.toMatchObject(none);
      }
      await expect(media.locateFile(place, as(alice))).rejects.toMatchObject(
        refused(ErrorReason.FILE_NOT_FOUND),
      );
      const asReference = image({ referenceFileIds: [fileId] });
      await expect(world.submit(asReference)).rejects.toMatchObject(
        refused(ErrorReason.REFERENCE_NOT_FOUND),
      );
      expect((await media.listJobs({}, as(alice))).jobs).toEqual([]);
      expect(await world.credits()).toEqual(paid);
      const { spec, events, ...left } = (await world.store.find(jobId)) ?? {};
      expect(left).toMatchObject({ state: "deleted", outputs: [], pinned: [], pinsHeld: false });
      expect(JSON.stringify({ ...spec, upstreams: [], price: 0, events })).not.toContain("WORDS");
    });

    test("has used its idempotency key: nothing is made or charged anew", async () => {
      const world = await open();
      const { job } = await world.submit(image(), { key: "k" });
      await world.ended(job.jobId);
      await remove(world, job.jobId);
      const paid = await world.credits();
      await expect(world.submit(image(), { key: "k" })).rejects.toMatchObject({
        ...none,
        message: expect.stringContaining("was deleted"),
      });
      await expect(world.submit(image({ n: 2 }), { key: "k" })).rejects.toMatchObject(
        refused(ErrorReason.IDEMPOTENCY_KEY_REUSED),
      );
      expect(world.upstream.tasks).toHaveLength(1);
      expect(await world.credits()).toEqual(paid);
      // Until the time at which the record is removed in any case.
      world.clock.jump(31 * 86_400_000);
      await until("the rest to go", async () => !(await world.store.find(job.jobId)));
      expect((await world.submit(image(), { key: "k" })).replayed).toBe(false);
    });

    test("is its own key's, under its own kind's path, and has ended", async () => {
      const world = await open();
      world.upstream.behave(hang);
      const { jobId } = (await world.submit()).job;
      await expect(remove(world, jobId)).rejects.toMatchObject(
        refused(ErrorReason.JOB_NOT_DELETABLE),
      );
      await world.cancel(jobId);
      for (const other of [alicesOther, bob]) {
        await expect(remove(world, jobId, other)).rejects.toMatchObject(none);
      }
      const elsewhere = { jobId, kind: JobKind.MUSIC };
      await expect(world.peers.media.deleteJob(elsewhere, as(alice))).rejects.toMatchObject(none);
      expect((await world.get(jobId)).status).toBe(JobStatus.FAILED);
      await remove(world, jobId);
      await expect(world.get(jobId)).rejects.toMatchObject(none);
      // Without an idempotency key the rest is removed soon.
      world.clock.jump(3_700_000);
      await until("the rest to go", async () => !(await world.store.find(jobId)));
    });

    test("twice at the same time is deleted once", async () => {
      const world = await open();
      world.upstream.behave(fail("failed"));
      const { jobId } = (await world.submit()).job;
      await world.ended(jobId);
      const both = await Promise.allSettled([remove(world, jobId), remove(world, jobId)]);
      expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    });
  });
}
