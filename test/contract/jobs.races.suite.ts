import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { afterEach, describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/errors.ts";
import type { ApplyRequest } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { outputsOwner } from "../../services/media/jobs/outputs.ts";
import { jumpClock } from "../support/jump-clock.ts";
import { until } from "../support/until.ts";
import { query } from "./jobs.shapes.ts";
import { alice, type createJobsWorld, image, type JobsWorld } from "./jobs.world.ts";

/** What holds where several drive the same job, whatever the database is. */
export function jobRacesContract(createWorld: typeof createJobsWorld): void {
  const worlds: JobsWorld[] = [];
  afterEach(async () => {
    for (const one of worlds.splice(0)) await one[Symbol.asyncDispose]();
  });

  /** Something that happens when media's operation of a kind has been done by billing, before media hears of it. */
  type Between = (kind: "reserve" | "settle" | "release", holdId: string) => Promise<void> | void;

  async function open(between: Between, workerCount = 1) {
    const interceptor: Interceptor = (next) => async (req) => {
      const res = await next(req);
      if (req.stream || req.method.name !== "Apply") return res;
      for (const { operation } of (req.message as ApplyRequest).operations) {
        if (operation.case) await between(operation.case, operation.value.holdId);
      }
      return res;
    };
    const clock = jumpClock();
    const world = await createWorld({ clock, between: interceptor, workerCount });
    worlds.push(world);
    return { ...world, clock };
  }
  const failure = { reason: ErrorReason.INSUFFICIENT_CREDITS, message: "no", param: undefined };
  const away = () => {
    throw new ConnectError("the reply is lost", Code.Unavailable);
  };

  describe("two who drive the same submission", () => {
    test("one was refused while the other held: the hold is let go, and it begins anew", async () => {
      let world: JobsWorld | undefined;
      const first: string[] = [];
      world = await open(async (kind, holdId) => {
        if (kind !== "reserve" || first.length > 0) return;
        first.push(holdId);
        // As another replica does, whose reserve came when there was nothing.
        await world?.store.apply(holdId, { kind: "reject", failure, now: world.clock.now() });
      });
      await world.fund(10n);
      const { job, replayed } = await world.submit(image(), { key: "k" });
      expect(replayed).toBe(false);
      expect([job.jobId]).not.toEqual(first);
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
      expect(await world.credits()).toEqual({ reserved: 0n, spent: 5n, spendable: 5n });
    });

    test("one accepted while the other was refused: both have the job", async () => {
      let world: JobsWorld | undefined;
      world = await open(async (kind, holdId) => {
        if (kind !== "reserve") return;
        // Funds come, another replica holds and accepts; this one's refusal is on its way.
        await world?.fund(5n);
        const job = await world?.store.find(holdId);
        if (!job) return;
        await world?.peers.billing.reserve({
          accountId: alice.accountId,
          unit: 2,
          holdId,
          amount: 5n,
          kind: 3,
          keyId: alice.keyId,
          ref: holdId,
          checkTime: {
            seconds: BigInt(Math.floor((job.createdAt + 60_000) / 1000)),
            nanos: ((job.createdAt + 60_000) % 1000) * 1e6,
          },
        });
        await world?.store.apply(holdId, { kind: "accept", now: world.clock.now() });
      });
      const { job } = await world.submit(image(), { key: "k" });
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
      expect(await world.credits()).toMatchObject({ reserved: 0n, spent: 5n });
    });
  });

  describe("a reply of billing that is lost", () => {
    test("of a reserve: the caller hears 503, the job is accepted all the same, and a retry finds it", async () => {
      let lost = true;
      const world = await open((kind) => {
        if (kind === "reserve" && lost) away();
      });
      await world.fund(10n);
      const unavailable = { reason: ErrorReason.SERVICE_UNAVAILABLE };
      await expect(world.submit(image(), { key: "k" })).rejects.toMatchObject(unavailable);
      lost = false;
      world.clock.jump(6_000);
      const { job, replayed } = await world.submit(image(), { key: "k" });
      expect(replayed).toBe(true);
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
      expect(await world.credits()).toEqual({ reserved: 0n, spent: 5n, spendable: 5n });
    });

    test("of a settlement: the job completes when billing is heard again, charged once", async () => {
      let lost = true;
      const world = await open((kind) => {
        if (kind === "settle" && lost) away();
      });
      await world.fund(10n);
      const { job } = await world.submit();
      await until("the charge", async () => (await world.credits()).spent === 5n);
      expect((await world.get(job.jobId)).status).toBe(JobStatus.RUNNING);
      world.clock.jump(20_000);
      lost = false;
      await until("the end", async () => {
        world.clock.jump(1_000);
        return (await world.get(job.jobId)).status === JobStatus.COMPLETED;
      });
      expect(await world.credits()).toEqual({ reserved: 0n, spent: 5n, spendable: 5n });
    });
  });

  test("a hold that an operator has released meanwhile: the job completes uncharged, and says so", async () => {
    const world = await open(() => {}, 0);
    await world.fund(10n);
    const { job } = await world.submit();
    const hold = { accountId: alice.accountId, unit: 2, holdId: job.jobId } as const;
    await world.admin.billing.endHold(hold);
    const now = world.clock.now();
    await world.store.claim(query({ now }));
    await world.store.apply(job.jobId, { kind: "win", fence: 1, outputs: [], now });
    world.clock.jump(5_000);
    expect(await world.ended(job.jobId)).toMatchObject({
      status: JobStatus.COMPLETED,
      creditsReserved: 5n,
      creditsCharged: 0n,
    });
  });

  test("a running job needs what its present attempt has stored, and nothing of the one before", async () => {
    const world = await open(() => {}, 0);
    await world.fund(10n);
    const { job } = await world.submit();
    const { store } = world;
    const owner = outputsOwner(store);
    const key = (fence: number) => `outputs/${job.jobId}/${fence}-0`;
    expect(await owner.isReferenced(key(1))).toBe(false);
    await store.claim(query({ now: world.clock.now() }));
    await store.claim(query({ now: world.clock.now() + 30_000 }));
    expect(await owner.isReferenced(key(1))).toBe(false);
    expect(await owner.isReferenced(key(2))).toBe(true);
    expect(await owner.isReferenced("outputs/job_none/2-0")).toBe(false);
    expect(await owner.isReferenced("outputs/nonsense")).toBe(false);
  });
}
