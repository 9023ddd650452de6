import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
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
  // A look at what was put off, and a lease.
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
