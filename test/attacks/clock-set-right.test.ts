import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { gated, scriptedUpstream } from "../contract/jobs.upstream.ts";
import { createJobsWorld } from "../contract/jobs.world.ts";
import { jumpClock } from "../support/jump-clock.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "genmesh-clock-"));
});
afterAll(() => rm(folder, { recursive: true }));

test("jobs of a process that died with a clock 3 hours ahead go on at once by the right one", async () => {
  const jobIds: string[] = [];
  {
    const clock = jumpClock();
    clock.set(3 * 3_600_000);
    await using world = await createJobsWorld({ folder, clock, workerCount: 0 });
    await world.fund(1_000n);
    for (let i = 0; i < 3; i++) jobIds.push((await world.submit()).job.jobId);
    const claim = { kind: "image", owner: "the one that dies", fullUpstreams: [] } as const;
    const claimed = await world.store.claim({ ...claim, now: clock.now(), modelLimits: new Map() });
    expect(claimed?.lease?.until).toBeGreaterThan(Date.now() + 2 * 3_600_000);
  }
  const clock = jumpClock();
  await using world = await createJobsWorld({ folder, clock });
  // The time of a look at postponed work, and of a lease.
  clock.jump(11_000);
  await expect.poll(() => leaseLeftMs(world), { timeout: 5_000 }).toBeLessThanOrEqual(30_000);
  clock.jump(31_000);
  for (const jobId of jobIds) await world.ended(jobId);
  expect((await world.credits()).reserved).toBe(0n);

  async function leaseLeftMs({ store }: typeof world): Promise<number> {
    const jobs = await Promise.all(jobIds.map((jobId) => store.find(jobId)));
    return Math.max(0, ...jobs.map((job) => (job?.lease?.until ?? 0) - clock.now()));
  }
});

test("a clock that is set back a day, and set right later, ends no job that a worker has", async () => {
  const clock = jumpClock();
  const gate = Promise.withResolvers<void>();
  const upstream = scriptedUpstream(gated(gate.promise));
  await using world = await createJobsWorld({ clock, upstream });
  await world.fund(10n);
  const { jobId } = (await world.submit()).job;
  const job = async () => world.store.find(jobId);
  await expect.poll(async () => (await job())?.state).toBe("running");
  const deadline = (await job())?.deadline ?? 0;
  clock.set(-86_400_000);
  // A heartbeat writes a new lease and a new deadline.
  await pass(10_000);
  expect((await job())?.deadline).toBeLessThan(deadline - 80_000_000);
  clock.set(86_400_000);
  await pass(5_000);
  expect((await job())?.state).toBe("running");
  gate.resolve();
  expect(await world.ended(jobId)).toMatchObject({ status: JobStatus.COMPLETED });
  expect(await world.credits()).toEqual({ reserved: 0n, spent: 5n, spendable: 5n });

  /** Time passes in steps of a sweep. */
  async function pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 500) {
      clock.jump(500);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
});

test("a clock that is 400 days ahead for some minutes erases no job, and an hour of it does", async () => {
  const clock = jumpClock();
  await using world = await createJobsWorld({ clock, retentionDays: 30 });
  await world.fund(10n);
  const { jobId } = (await world.submit()).job;
  await world.ended(jobId);
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 10_000) {
      clock.jump(10_000);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  await pass(10_000);
  clock.set(400 * 86_400_000);
  await pass(300_000);
  expect((await world.store.find(jobId))?.state).toBe("completed");
  clock.set(-400 * 86_400_000);
  await pass(60_000);
  expect((await world.store.find(jobId))?.state).toBe("completed");
  clock.set(400 * 86_400_000);
  await pass(3_600_000 + 300_000);
  await expect.poll(() => world.store.find(jobId)).toBeUndefined();
});
