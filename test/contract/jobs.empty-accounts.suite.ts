import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { maxEmptyMs } from "../../services/media/limits.ts";
import type { Refusal } from "../../services/upstreams/media/port.ts";
import { type OpenedJobsWorld, worldsOf } from "./jobs.opening.ts";
import { succeed } from "./jobs.upstream.ts";
import { asked, behave, catalog, longMs, parked, turnAway } from "./jobs.waits.ts";
import { type createJobsWorld, image } from "./jobs.world.ts";

/** The rules for jobs while the operator's accounts at upstreams are empty, on either database. */
export function emptyAccountsContract(createWorld: typeof createJobsWorld): void {
  const open = worldsOf(createWorld);
  const rounds = maxEmptyMs / longMs;

  /** The job is refused in each of several rounds of one minute, by `upstreams` upstreams. */
  async function waitRounds(world: OpenedJobsWorld, jobId: string, upstreams: number) {
    for (let round = 1; round <= rounds; round++) {
      await parked(world, jobId, round * upstreams);
      expect(await world.credits()).toMatchObject({ reserved: 5n, spent: 0n });
      world.clock.jump(longMs);
    }
  }

  async function expectFreeFailure(world: OpenedJobsWorld, jobId: string) {
    const { status, error } = await world.ended(jobId);
    expect(status).toBe(JobStatus.FAILED);
    expect(error?.reason).toBe(ErrorReason.SERVICE_UNAVAILABLE);
    expect(await world.credits()).toMatchObject({ reserved: 0n, spent: 0n });
  }

  describe("a job for which the operator's accounts are empty", () => {
    test.each([
      ["image-1", { one: "account_empty" }, 1],
      ["both", { one: "account_empty", two: "account_empty" }, 2],
      ["both", { one: "account_empty", two: "denied" }, 2],
      ["both", { one: "denied", two: "account_empty" }, 2],
    ] as [model: string, does: Record<string, Refusal>, upstreams: number][])(
      "fails for free after some minutes: %s, %j",
      async (model, does, upstreams) => {
        const world = await open({ catalog });
        behave(world, does);
        const { job } = await world.submit(image({ model }));
        await waitRounds(world, job.jobId, upstreams);
        await expectFreeFailure(world, job.jobId);
        expect(asked(world)).toHaveLength((rounds + 1) * upstreams);
        // Callers learn nothing of upstreams.
        expect((await world.get(job.jobId)).error?.message).not.toMatch(/upstream|account/);
      },
    );

    test("is asked for a last time when the time is over, however long a pause the upstream asks for", async () => {
      const world = await open({ catalog });
      world.upstream.behave(turnAway({ refusal: "account_empty", retryAfterMs: 2 * maxEmptyMs }));
      const { job } = await world.submit();
      expect((await parked(world, job.jobId, 1)).pauseMs).toBe(maxEmptyMs);
      world.upstream.behave(succeed);
      world.clock.jump(maxEmptyMs);
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
      expect(await world.credits()).toMatchObject({ reserved: 0n, spent: 5n });
    });

    test("waits as long as any other where another upstream is only busy", async () => {
      const world = await open({ catalog });
      behave(world, { one: "account_empty", two: "too_many_requests" });
      const { job } = await world.submit(image({ model: "both" }));
      await waitRounds(world, job.jobId, 2);
      await parked(world, job.jobId, 2 * rounds + 2);
      // The time counts from the next refusal.
      behave(world, { one: "account_empty", two: "account_empty" });
      world.clock.jump(maxEmptyMs);
      await parked(world, job.jobId, 2 * rounds + 4);
      world.clock.jump(maxEmptyMs);
      await expectFreeFailure(world, job.jobId);
    });

    test("knows over a restart since when it waits", async () => {
      const folder = await mkdtemp(join(tmpdir(), "genmesh-empty-"));
      onTestFinished(() => rm(folder, { recursive: true }));
      const first = await open({ catalog, folder });
      await first.fund(10_000n);
      const empty = turnAway({ refusal: "account_empty", retryAfterMs: maxEmptyMs });
      first.upstream.behave(empty);
      const { job } = await first.submit();
      await parked(first, job.jobId, 1);
      const { clock } = first;
      await first[Symbol.asyncDispose]();
      const second = await open({ catalog, folder, clock });
      second.upstream.behave(empty);
      clock.jump(maxEmptyMs);
      await expectFreeFailure(second, job.jobId);
    });
  });
}
