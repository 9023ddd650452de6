import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import type { ApplyRequest } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { JobKind, JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { FailPoint } from "../../services/media/fail-points.ts";
import type { Job } from "../../services/media/jobs/job.ts";
import { outputsOwner } from "../../services/media/jobs/outputs.ts";
import { reservingBeatMs } from "../../services/media/limits.ts";
import { jumpClock } from "../support/jump-clock.ts";
import { until } from "../support/until.ts";
import { output, query } from "./jobs.shapes.ts";
import { alice, as, type createJobsWorld, image, type JobsWorld, video } from "./jobs.world.ts";

/** A PNG of one pixel. */
const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** Holds a job's price, like its submission. */
async function holdFor({ peers }: JobsWorld, { jobId, createdAt }: Job): Promise<void> {
  await peers.billing.reserve({
    accountId: alice.accountId,
    unit: 2,
    holdId: jobId,
    amount: 5n,
    kind: 3,
    keyId: alice.keyId,
    ref: jobId,
    checkTime: {
      seconds: BigInt(Math.floor((createdAt + 60_000) / 1000)),
      nanos: ((createdAt + 60_000) % 1000) * 1e6,
    },
  });
}

/** The rules for several processes that work on the same job, on any database. */
export function jobRacesContract(createWorld: typeof createJobsWorld): void {
  const worlds: JobsWorld[] = [];
  afterEach(async () => {
    for (const one of worlds.splice(0)) await one[Symbol.asyncDispose]();
  });

  /** Runs after billing has done media's operation of a kind, and before media has the answer. */
  type Between = (
    kind: "reserve" | "settle" | "release" | "draw",
    holdId: string,
  ) => Promise<void> | void;

  async function open(between: Between, workerCount = 1, atInsert = () => {}) {
    const interceptor: Interceptor = (next) => async (req) => {
      const res = await next(req);
      if (req.stream || req.method.name !== "Apply") return res;
      for (const { operation } of (req.message as ApplyRequest).operations) {
        if (operation.case) await between(operation.case, operation.value.holdId);
      }
      return res;
    };
    const clock = jumpClock();
    const failPoints = (point: FailPoint) => {
      if (point === "inserted") atInsert();
    };
    const world = await createWorld({ clock, between: interceptor, workerCount, failPoints });
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
        // Like another replica whose call for a hold came before the funds.
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
        // Funds come, and another replica holds the price and accepts the job. This replica's refusal is on its way.
        await world?.fund(5n);
        const job = await world?.store.find(holdId);
        if (!world || !job) return;
        await holdFor(world, job);
        await world?.store.apply(holdId, { kind: "accept", now: world.clock.now() });
      });
      const { job } = await world.submit(image(), { key: "k" });
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
      expect(await world.credits()).toMatchObject({ reserved: 0n, spent: 5n });
    });

    test("one pins references when the other's job has ended: they are let go of, the file can go", async () => {
      let world: Awaited<ReturnType<typeof open>> | undefined;
      const ends: string[] = [];
      world = await open(async (kind, jobId) => {
        if (!world || kind !== "reserve" || ends.length > 0) return;
        ends.push(jobId);
        // Like another replica and its worker, before this one has the answer of billing.
        const { store, clock } = world;
        await store.apply(jobId, { kind: "attach", pinned: [], now: clock.now() });
        await store.apply(jobId, { kind: "accept", now: clock.now() });
        const hasEnded = async () => {
          const job = await store.find(jobId);
          // While a worker has the job, its lease would end before a slow store has its heartbeat.
          if (job?.state !== "running") clock.jump(500);
          return job?.state === "completed" && !job.pinsHeld;
        };
        await until("its references to be let go of", hasEnded);
      });
      await world.fund(500n);
      const input_reference = { image_url: `data:image/png;base64,${pixel}` };
      const { job } = await world.submit(video({ input_reference }), { kind: JobKind.VIDEO });
      expect(ends).toEqual([job.jobId]);
      const { files } = await world.peers.media.listFiles({ pageSize: 10 }, as(alice));
      for (const { fileId } of files) await world.peers.media.deleteFile({ fileId }, as(alice));
      expect(files).toHaveLength(1);
      for await (const { key } of world.blobs.list("uploads/")) expect.unreachable(key);
    });
  });

  test("a replica that cannot bring the references leaves them to the one that could", async () => {
    const answers = [Promise.withResolvers<number>(), Promise.withResolvers<number>()];
    const asked = answers.map(() => Promise.withResolvers<void>());
    let requests = 0;
    // Its URL works once, like some signed ones.
    const host = createServer(async (_, response) => {
      const at = requests++;
      asked[at]?.resolve();
      response.statusCode = (await answers[at]?.promise) ?? 500;
      response.end(response.statusCode === 200 ? Buffer.from(pixel, "base64") : "");
    });
    await new Promise<void>((resolve) => host.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void host.close());
    const { port } = host.address() as AddressInfo;
    const one = await open(() => {}, 0);
    await one.fund(500n);
    const { folder, clock } = one;
    const other = await createWorld({ folder, clock, workerCount: 0 });
    worlds.unshift(other);
    const input_reference = { image_url: `http://127.0.0.1:${port}/a` };
    const submitting = [one, other].map(async (world, at) => {
      if (at > 0) await asked[0]?.promise;
      return world.submit(video({ input_reference }), { kind: JobKind.VIDEO, key: "k" });
    });
    await asked[1]?.promise;
    answers[0]?.resolve(200);
    const accepted = await submitting[0];
    answers[1]?.resolve(404);
    expect((await submitting[1])?.job.jobId).toBe(accepted?.job.jobId);
    const { files } = await one.peers.media.listFiles({ pageSize: 10 }, as(alice));
    for (const { fileId } of files) await one.peers.media.deleteFile({ fileId }, as(alice));
    // The waiting job still needs its bytes.
    const [reference] = (await one.store.find(accepted?.job.jobId ?? ""))?.pinned ?? [];
    expect(await one.blobs.stat(reference?.blobKey ?? "")).toBeDefined();
  });

  test("a submission whose job another has accepted, and its caller deleted, hears that it is gone", async () => {
    let world: JobsWorld | undefined;
    const ends: string[] = [];
    world = await open(async (kind, jobId) => {
      if (!world || kind !== "reserve" || ends.length > 0) return;
      ends.push(jobId);
      // Like another replica that handles a repeat, and its caller, before this one has the answer of billing.
      await world.store.apply(jobId, { kind: "accept", now: world.clock.now() });
      await world.ended(jobId);
      await world.peers.media.deleteJob({ jobId }, as(alice));
    });
    await world.fund(10n);
    await expect(world.submit(image(), { key: "k" })).rejects.toMatchObject({
      reason: ErrorReason.JOB_NOT_FOUND,
      message: expect.stringContaining("was deleted"),
    });
    expect(await world.credits()).toMatchObject({ reserved: 0n, spent: 5n });
  });

  /** Longer than a submission's lease, in steps, so that a living process renews it. */
  async function sweep({ clock }: { clock: { jump(ms: number): void } }): Promise<void> {
    for (let ms = 0; ms < 10_000; ms += 500) {
      clock.jump(500);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  describe("a submission whose request ended without an answer", () => {
    test("is rejected when its lease is over, its hold let go, its key free", async () => {
      const world = await open(
        () => {},
        1,
        () => {
          throw new Error("the process dies here");
        },
      );
      await world.fund(10n);
      await expect(world.submit(image(), { key: "k" })).rejects.toThrow();
      const { jobs } = await world.peers.media.listJobs({}, as(alice));
      const [{ jobId } = { jobId: "" }] = jobs;
      const job = await world.store.find(jobId);
      expect(job?.state).toBe("reserving");
      if (job) await holdFor(world, job);
      await sweep(world);
      await until("its rejection", async () => {
        return (await world.store.find(jobId))?.state === "rejected";
      });
      await until("its hold's end", async () => (await world.credits()).reserved === 0n);
      expect(await world.credits()).toEqual({ reserved: 0n, spent: 0n, spendable: 10n });
    });

    test("is taken up by a repeat that comes before: one job, one charge", async () => {
      let dies = true;
      const world = await open(
        () => {},
        1,
        () => {
          if (dies) throw new Error("the process dies here");
        },
      );
      await world.fund(10n);
      await expect(world.submit(image(), { key: "k" })).rejects.toThrow();
      dies = false;
      const { jobs } = await world.peers.media.listJobs({}, as(alice));
      const { job } = await world.submit(image(), { key: "k" });
      expect(jobs.map(({ jobId }) => jobId)).toEqual([job.jobId]);
      await sweep(world);
      expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
      expect(await world.credits()).toEqual({ reserved: 0n, spent: 5n, spendable: 5n });
    });
  });

  test("a submission that lives keeps its lease, however long billing takes, beside another process", async () => {
    const held = Promise.withResolvers<string>();
    const slow = Promise.withResolvers<void>();
    const world = await open(async (kind, holdId) => {
      if (kind !== "reserve") return;
      held.resolve(holdId);
      await slow.promise;
    });
    const { folder, clock } = world;
    const other = await createWorld({ folder, clock, workerCount: 0 });
    worlds.unshift(other);
    await world.fund(10n);
    const submitted = world.submit();
    // Awaited below in the usual case.
    submitted.catch(() => {});
    const jobId = await held.promise;
    // Far longer than its lease, in steps of a heartbeat. The clock moves on when each is stored.
    const leaseEnd = async () => {
      const job = await world.store.find(jobId);
      expect(job?.state).toBe("reserving");
      return job?.dueAt ?? 0;
    };
    try {
      for (let ms = 0; ms < 10_500; ms += reservingBeatMs) {
        const before = await leaseEnd();
        clock.jump(reservingBeatMs);
        await until("its next beat", async () => (await leaseEnd()) > before);
      }
    } finally {
      slow.resolve();
    }
    expect((await submitted).job.jobId).toBe(jobId);
    expect((await world.ended(jobId)).status).toBe(JobStatus.COMPLETED);
  });

  describe("a reply of billing that is lost", () => {
    test.for([undefined, "k"])(
      "of a reserve: the caller hears 503, nothing is made or charged, and asking again is one job (key: %s)",
      async (key) => {
        let lost = true;
        const world = await open((kind) => {
          if (kind === "reserve" && lost) away();
        });
        await world.fund(10n);
        const options = key === undefined ? {} : { key };
        const unavailable = { reason: ErrorReason.SERVICE_UNAVAILABLE };
        await expect(world.submit(image(), options)).rejects.toMatchObject(unavailable);
        lost = false;
        // The key is free, so it may have another body.
        const body = image({ prompt: "another" });
        const { job, replayed } = await world.submit(body, options);
        expect(replayed).toBe(false);
        await sweep(world);
        expect((await world.ended(job.jobId)).status).toBe(JobStatus.COMPLETED);
        await until("what was held", async () => (await world.credits()).reserved === 0n);
        expect(await world.credits()).toEqual({ reserved: 0n, spent: 5n, spendable: 5n });
        const { jobs } = await world.peers.media.listJobs({}, as(alice));
        expect(jobs.map(({ jobId }) => jobId)).toEqual([job.jobId]);
      },
    );

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
    await world.store.apply(job.jobId, { kind: "win", fence: 1, outputs: [output], now });
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
