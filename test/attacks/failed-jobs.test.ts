import { expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { maxFailedJobs, maxFailedRequestBytes } from "../../services/media/limits.ts";
import { worldsOf } from "../contract/jobs.opening.ts";
import { jobOf, must, now } from "../contract/jobs.shapes.ts";
import { fail, succeed } from "../contract/jobs.upstream.ts";
import { alice, createJobsWorld, image } from "../contract/jobs.world.ts";
import { until } from "../support/until.ts";

const open = worldsOf(createJobsWorld);

test("a failed job, which cost nothing, keeps its request where that takes little room", async () => {
  const world = await open();
  world.upstream.behave(fail("failed"));
  // Three bytes a character, far fewer than may be sent.
  const longest = maxFailedRequestBytes / 3 - 4;
  const keeps = (await world.submit(image({ prompt: "\u20ac".repeat(longest) }))).job;
  const drops = (await world.submit(image({ prompt: "\u20ac".repeat(longest + 8) }))).job;
  for (const { jobId } of [keeps, drops]) {
    expect((await world.ended(jobId)).status).toBe(JobStatus.FAILED);
  }
  expect((await world.store.find(drops.jobId))?.spec.request).toMatchObject({ prompt: "" });
  world.upstream.behave(succeed);
  const retry = (jobId: string) => world.admin.media.retryJob({ jobId, operationId: jobId });
  const again = await retry(keeps.jobId);
  expect((await world.ended(again.job?.jobId ?? "")).status).toBe(JobStatus.COMPLETED);
  await expect(retry(drops.jobId)).rejects.toMatchObject({
    reason: ErrorReason.OPERATION_CONFLICT,
  });
  expect(await world.credits()).toMatchObject({ reserved: 0n, spent: 5n });
});

test("an account that only fails has its newest failed jobs, and no more", {
  timeout: 240_000,
}, async () => {
  const world = await open();
  const older = Array.from({ length: maxFailedJobs + 4 }, (_, i) => `job_${i}`);
  const spec = { ...jobOf("job_x").spec, references: [] };
  await Promise.all(
    older.map(async (jobId, i) => {
      const job = { ...jobOf(jobId, { account: alice.accountId, createdAt: now + i }), spec };
      await world.store.insert({ ...job, pinned: [], pinsHeld: false, state: "failing" });
      const at = world.clock.now();
      const expiresAt = at + 30 * 86_400_000;
      await must(world.store, jobId, { kind: "fail", charged: 0n, expiresAt, now: at });
    }),
  );
  world.upstream.behave(fail("failed"));
  const { job } = await world.submit();
  expect((await world.ended(job.jobId)).status).toBe(JobStatus.FAILED);
  const left = async () => {
    const found = await Promise.all(older.slice(0, 8).map((id) => world.store.find(id)));
    return found.filter((one) => one !== undefined).length;
  };
  // Five are too many. Four were kept before, and the newest is added.
  await until("the oldest to go", async () => (await left()) === 3);
  const beyond = {
    state: "failed",
    accountId: alice.accountId,
    kind: "image",
    newest: 0,
    limit: 10_000,
  } as const;
  expect(await world.store.surplus(beyond)).toHaveLength(maxFailedJobs);
  expect(await world.store.find(job.jobId)).toBeDefined();
});
