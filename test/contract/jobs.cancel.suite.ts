import { setImmediate as turn } from "node:timers/promises";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { ApplyRequest } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { JobKind, JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { cancelGraceMs, heartbeatMs } from "../../services/media/limits.ts";
import type { GenerationTask } from "../../services/upstreams/media/port.ts";
import { jumpClock } from "../support/jump-clock.ts";
import { until } from "../support/until.ts";
import { worldsOf } from "./jobs.opening.ts";
import { gated, hang, scriptedUpstream, succeed } from "./jobs.upstream.ts";
import { alicesOther, as, bob, type createJobsWorld, image, type JobsWorld } from "./jobs.world.ts";

const untouched = { reserved: 0n, spent: 0n, spendable: 10_000n };
const cancelled = {
  status: JobStatus.FAILED,
  creditsCharged: 0n,
  outputs: [],
  error: { reason: ErrorReason.JOB_CANCELLED },
};
const refused = (reason: ErrorReason) => ({ reason });

/** A model of 5 credits at an external upstream. */
const at = (protocol: string, more = "") => `upstreams:
  one: { protocol: ${protocol}, baseUrl: "http://127.0.0.1:9/v1"${more} }
models: [{ id: image-1, kind: image, upstream: one, creditPrice: 5, sizes: [64x64], maxReferences: 1 }]
`;

/** Sends the request, gets the task's name from the upstream, and never ends. */
async function nameAndHang(task: GenerationTask) {
  await task.sending();
  await task.saveResumeId("task_1");
  return hang(task);
}

/** The rules for a caller's cancel, on any database. */
export function cancelContract(createWorld: typeof createJobsWorld): void {
  const open = worldsOf(createWorld);
  /** Waits for the first attempt, or for the `n`th. */
  const attempt = async ({ upstream }: Pick<Awaited<ReturnType<typeof open>>, "upstream">, n = 1) =>
    until(`attempt ${n}`, () => upstream.tasks[n - 1]);
  /** A clock that shows when a worker, having seen the cancel, begins to wait for the task's name from the upstream. */
  const clockOfGrace = () => {
    const clock = jumpClock();
    const begun = Promise.withResolvers<void>();
    const sleep: Clock["sleep"] = (ms, signal) => {
      if (ms === cancelGraceMs) begun.resolve();
      return clock.sleep(ms, signal);
    };
    // Billing sleeps for as long between two looks at monthly grants.
    return { clocks: { clock: { ...clock, sleep }, billingClock: clock }, begun: begun.promise };
  };
  const stopped = ({ signal }: GenerationTask) =>
    until("the attempt to be stopped", () => (signal.aborted ? signal : undefined), {
      withinMs: 60_000,
    });

  describe("a queued job that is cancelled", () => {
    test("has failed at once, costs nothing, and is never begun; again is the same", async () => {
      const world = await open({ workerCount: 0 });
      const { job } = await world.submit(image(), { key: "k" });
      expect(await world.credits()).toMatchObject({ reserved: 5n });
      const first = await world.cancel(job.jobId);
      expect(first).toMatchObject(cancelled);
      expect(await world.credits()).toEqual(untouched);
      expect(await world.cancel(job.jobId)).toEqual(first);
      const all = await Promise.all(Array.from({ length: 9 }, () => world.cancel(job.jobId)));
      for (const one of all) expect(one).toEqual(first);
      // A repeat of its submission finds the job.
      expect(await world.submit(image(), { key: "k" })).toEqual({ job: first, replayed: true });
      const later = await open({ folder: world.folder, clock: world.clock, withApi: false });
      const { job: next } = await world.submit();
      expect((await world.ended(next.jobId)).status).toBe(JobStatus.COMPLETED);
      expect(later.upstream.tasks.map(({ jobId }) => jobId)).toEqual([next.jobId]);
    });

    test("twenty times at the same moment has failed for all of them, at no cost", async () => {
      const world = await open({ workerCount: 0 });
      const { jobId } = (await world.submit()).job;
      const all = await Promise.all(Array.from({ length: 20 }, () => world.cancel(jobId)));
      for (const one of all) expect(one).toMatchObject(cancelled);
      expect(await world.credits()).toEqual(untouched);
      expect(await world.get(jobId)).toEqual(all[0]);
    });

    test("is its own key's, under its own kind's path", async () => {
      const world = await open({ workerCount: 0 });
      const { jobId } = (await world.submit()).job;
      const { media } = world.peers;
      const none = refused(ErrorReason.JOB_NOT_FOUND);
      for (const other of [alicesOther, bob]) {
        await expect(world.cancel(jobId, other)).rejects.toMatchObject(none);
      }
      const elsewhere = { jobId, kind: JobKind.VIDEO };
      await expect(
        media.cancelJob(elsewhere, as({ accountId: "acct_alice", keyId: "key_alice" })),
      ).rejects.toMatchObject(none);
      await expect(world.cancel("job_none")).rejects.toMatchObject(none);
      expect((await world.get(jobId)).status).toBe(JobStatus.QUEUED);
    });

    test("is not yet there while it is being accepted: its caller comes again", async () => {
      const holding = Promise.withResolvers<void>();
      const gate = Promise.withResolvers<void>();
      const between: Interceptor = (next) => async (req) => {
        if (!req.stream && isOf(req.message, req.method.name, "reserve")) {
          holding.resolve();
          await gate.promise;
        }
        return next(req);
      };
      const world = await open({ between, workerCount: 0 });
      const submitting = world.submit();
      await holding.promise;
      const { jobs } = await world.peers.media.listJobs(
        {},
        as({ accountId: "acct_alice", keyId: "key_alice" }),
      );
      const jobId = jobs[0]?.jobId ?? "";
      await expect(world.cancel(jobId)).rejects.toMatchObject(
        refused(ErrorReason.SERVICE_UNAVAILABLE),
      );
      gate.resolve();
      await submitting;
      expect(await world.cancel(jobId)).toMatchObject(cancelled);
      expect(await world.credits()).toEqual(untouched);
    });
  });

  describe("a running job that is cancelled", () => {
    test("stops its worker, which has its place free", async () => {
      const world = await open({ workers: { image: 1 } });
      world.upstream.behave(hang);
      const { jobId } = (await world.submit()).job;
      const task = await attempt(world);
      expect(await world.cancel(jobId)).toMatchObject(cancelled);
      const { reason } = await stopped(task);
      expect(String(reason)).toContain("cancelled");
      world.upstream.behave(succeed);
      const next = await world.submit();
      expect((await world.ended(next.job.jobId)).status).toBe(JobStatus.COMPLETED);
      expect(await world.get(jobId)).toMatchObject(cancelled);
      expect(await world.credits()).toMatchObject({ reserved: 0n, spent: 5n });
    });

    test("stops its worker in another process too", async () => {
      const world = await open({ workerCount: 0 });
      const upstream = scriptedUpstream(hang);
      await open({ folder: world.folder, clock: world.clock, withApi: false, upstream });
      const { jobId } = (await world.submit()).job;
      const task = await attempt({ upstream });
      expect(await world.cancel(jobId)).toMatchObject(cancelled);
      await stopped(task);
      expect(await world.credits()).toEqual(untouched);
    });

    test("is told to its upstream by the id that this gave its task", async () => {
      const world = await open({ catalog: at("genmesh") });
      world.upstream.behave(nameAndHang);
      const { jobId } = (await world.submit()).job;
      await until("the task's id", async () => (await world.store.find(jobId))?.resumeId);
      expect(await world.cancel(jobId)).toMatchObject(cancelled);
      await stopped(await attempt(world));
      expect(world.upstream.cancelled).toMatchObject([
        { jobId, resumeId: "task_1", kind: "image" },
      ]);
    });

    test("while its upstream is being asked: the answer is waited for, and the task taken back", async () => {
      const grace = clockOfGrace();
      const world = await open({ catalog: at("genmesh"), ...grace.clocks });
      const answer = Promise.withResolvers<void>();
      world.upstream.behave(async (task) => {
        await task.sending();
        await Promise.race([answer.promise, hang(task)]);
        await task.saveResumeId("task_late");
        return hang(task);
      });
      const { jobId } = (await world.submit()).job;
      const task = await attempt(world);
      await until("the request", async () => (await world.store.find(jobId))?.sent);
      // The caller has its answer and its credits at once.
      expect(await world.cancel(jobId)).toMatchObject(cancelled);
      expect(await world.credits()).toEqual(untouched);
      expect(world.upstream.cancelled).toEqual([]);
      await grace.begun;
      // Its heartbeat finds that another process has ended the job. With an embedded store that takes a few turns of the event loop.
      world.clock.jump(heartbeatMs);
      for (let turns = 0; turns < 20; turns++) await turn();
      expect(task.signal.aborted).toBe(false);
      answer.resolve();
      await until("the upstream to be told", () => world.upstream.cancelled.length > 0);
      expect(world.upstream.cancelled).toMatchObject([{ jobId, resumeId: "task_late" }]);
      await stopped(task);
    });

    test("and whose upstream never names its task is cut off in the end", async () => {
      const grace = clockOfGrace();
      const world = await open({ catalog: at("genmesh"), ...grace.clocks });
      world.upstream.behave(async (task) => {
        await task.sending();
        return hang(task);
      });
      const { jobId } = (await world.submit()).job;
      await until("the request", async () => (await world.store.find(jobId))?.sent);
      await world.cancel(jobId);
      const task = await attempt(world);
      await grace.begun;
      expect(task.signal.aborted).toBe(false);
      world.clock.jump(cancelGraceMs);
      expect(String((await stopped(task)).reason)).toContain("cancelled");
      expect(world.upstream.cancelled).toEqual([]);
    });

    test("is charged where its upstream charges for what was sent, and only then", async () => {
      const world = await open({ catalog: at("openai", ", chargesWhenCancelled: true") });
      world.upstream.behave(nameAndHang);
      const sent = await world.submit();
      await until("the request", async () => (await world.store.find(sent.job.jobId))?.sent);
      expect(await world.cancel(sent.job.jobId)).toMatchObject({
        ...cancelled,
        creditsCharged: 5n,
      });
      world.upstream.behave(hang);
      const unsent = await world.submit();
      await attempt(world, 2);
      expect(await world.cancel(unsent.job.jobId)).toMatchObject(cancelled);
      expect(await world.credits()).toEqual({ reserved: 0n, spent: 5n, spendable: 9_995n });
      expect((await world.cancel(sent.job.jobId)).creditsCharged).toBe(5n);
      world.upstream.behave(nameAndHang);
      const many = (await world.submit()).job.jobId;
      await until("the request", async () => (await world.store.find(many))?.sent);
      const all = await Promise.all(Array.from({ length: 20 }, () => world.cancel(many)));
      for (const one of all) expect(one).toMatchObject({ ...cancelled, creditsCharged: 5n });
      expect(await world.credits()).toEqual({ reserved: 0n, spent: 10n, spendable: 9_990n });
    });
  });

  test("a job that has ended, or is being charged, is not cancelled", async () => {
    const settling = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const between: Interceptor = (next) => async (req) => {
      if (!req.stream && isOf(req.message, req.method.name, "settle")) {
        settling.resolve();
        await gate.promise;
      }
      return next(req);
    };
    const world = await open({ between });
    const { jobId } = (await world.submit()).job;
    await settling.promise;
    const conflict = refused(ErrorReason.JOB_NOT_CANCELLABLE);
    await expect(world.cancel(jobId)).rejects.toMatchObject(conflict);
    gate.resolve();
    expect((await world.ended(jobId)).status).toBe(JobStatus.COMPLETED);
    await expect(world.cancel(jobId)).rejects.toMatchObject(conflict);
    expect(await world.credits()).toMatchObject({ spent: 5n });
  });

  test("a cancel whose release has no answer is ended by the sweeper, once", async () => {
    let lost = 0;
    const between: Interceptor = (next) => async (req) => {
      const res = await next(req);
      if (!req.stream && isOf(req.message, req.method.name, "release") && lost++ < 2) {
        throw new ConnectError("the reply is lost", Code.Unavailable);
      }
      return res;
    };
    const world = await open({ between, workerCount: 0 });
    const { jobId } = (await world.submit()).job;
    const answer = await world.cancel(jobId);
    expect([JobStatus.RUNNING, JobStatus.FAILED]).toContain(answer.status);
    const ended = until("the end", async () => {
      world.clock.jump(4_000);
      const job = await world.get(jobId);
      return job.status === JobStatus.FAILED ? job : undefined;
    });
    expect(await ended).toMatchObject(cancelled);
    expect(await world.credits()).toEqual(untouched);
  });

  test("a cancel that races with the end: one of them wins, and the money follows it", async () => {
    const world = await open({ workers: { image: 4 } });
    let completed = 0n;
    for (let round = 0; round < 8; round++) {
      const gate = Promise.withResolvers<void>();
      world.upstream.behave(gated(gate.promise));
      const { jobId } = (await world.submit()).job;
      await attempt(world, round + 1);
      gate.resolve();
      const answers = await Promise.allSettled([world.cancel(jobId), world.cancel(jobId)]);
      const job = await world.ended(jobId);
      const isCancelled = job.error?.reason === ErrorReason.JOB_CANCELLED;
      if (!isCancelled) completed++;
      expect(job.status).toBe(isCancelled ? JobStatus.FAILED : JobStatus.COMPLETED);
      for (const answer of answers) {
        expect(answer.status).toBe(isCancelled ? "fulfilled" : "rejected");
      }
    }
    await noneHeld(world);
    expect(await world.credits()).toMatchObject({ spent: 5n * completed });
  });
}

function noneHeld(world: Pick<JobsWorld, "credits">) {
  return until("no open hold", async () => (await world.credits()).reserved === 0n);
}

/** Is it a call of billing with an operation of this kind? */
function isOf(message: unknown, method: string, kind: "reserve" | "settle" | "release"): boolean {
  if (method !== "Apply") return false;
  return (message as ApplyRequest).operations.some(({ operation }) => operation.case === kind);
}
