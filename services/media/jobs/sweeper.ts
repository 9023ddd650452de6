// Drives on jobs that no process has in hand: half-done submissions, lost workers, missed wake-ups, ends and deletions. Every
// process with media's API runs it.

import type { Clock } from "#kit/time/clock.ts";
import { createBringForward, type LeaseTime } from "#kit/time/lease-time.ts";
import type { JobEvents } from "../events.ts";
import type { FailPoints } from "../fail-points.ts";
import { leaseMs, sweepBatch, sweepConcurrency, sweepIntervalMs, sweepRetryMs } from "../limits.ts";
import type { ReferenceImporter } from "../references/port.ts";
import { type EraseContext, erase } from "./delete.ts";
import type { Driver } from "./drive.ts";
import { type FinishContext, finish } from "./finish.ts";
import { isHeld, isParked, isTerminal, isUnannounced, type Job, type JobState } from "./job.ts";
import { isOverdue } from "./lifecycle.ts";
import { mayHaveBegun } from "./lost-answer.ts";
import type { Retention } from "./outputs.ts";
import { publishWake, type WakeContext } from "./wake.ts";

/** The parts that sweeping needs. */
interface SweepContext extends FinishContext, WakeContext, EraseContext {
  clock: Clock;
  /** The time by which it judges the leases of submissions, and the leases and deadlines of running jobs. */
  leaseTime: LeaseTime;
  driver: Driver;
  importer: ReferenceImporter;
  retention: Retention;
  events: JobEvents;
  failPoints: FailPoints;
}

/** Drives on every job that is due, because the process that had it is dead, away, or slow. */
interface Sweeper {
  /** Looks every 500 ms until `signal` aborts. Resolves when the work under way has ended. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /** Handles the jobs that are due now, once. */
  sweep(): Promise<void>;
}

type Lane = readonly JobState[];

/** They are due at the end of a request's lease. */
const submissions: Lane = ["reserving"];

/** Each lane waits only for its own jobs, so wake-ups do not wait for a billing that is away. */
const lanes: readonly Lane[] = [
  ["queued", "running"],
  submissions,
  ["settling", "failing"],
  ["completed", "failed", "rejected", "deleted"],
];

/** Makes a sweeper. Any number of them may sweep at once. */
export function createSweeper(context: SweepContext): Sweeper {
  const { clock, leaseTime, store, events } = context;

  const driveOn = async (job: Job) => {
    try {
      await sweepJob(job, context);
      if (!isTerminal(job)) events.swept(job.state);
    } catch (error) {
      events.trouble("a due job could not be driven on", job.jobId, error);
    }
  };
  const bringForward = createBringForward(clock, leaseMs, store);
  const sweepLane = async (states: Lane) => {
    const now = states === submissions ? leaseTime() : clock.now();
    const until = now + sweepRetryMs;
    const due = (await store.takeDue({ states, now, until, limit: sweepBatch })).values();
    const worker = async () => {
      for (const job of due) await driveOn(job);
    };
    await Promise.all(Array.from({ length: sweepConcurrency }, worker));
  };
  const unread = (error: unknown) => events.trouble("due jobs could not be read", undefined, error);
  const busy = new Map<Lane, Promise<void>>();
  const begin = (lane: Lane) => {
    const swept = sweepLane(lane).catch(unread);
    busy.set(
      lane,
      swept.finally(() => busy.delete(lane)),
    );
  };
  return {
    async run(signal) {
      while (!signal.aborted) {
        // Called even while no job is due, because it notices a set clock only when it is called.
        leaseTime();
        await bringForward().catch(unread);
        const free = lanes.filter((lane) => !busy.has(lane));
        // Most looks find nothing. One question serves all lanes.
        const isAnyDue = await store.isAnyDue(free.flat(), clock.now()).catch(unread);
        if (isAnyDue && !signal.aborted) free.forEach(begin);
        await clock.sleep(sweepIntervalMs, signal).catch(() => {});
      }
      await Promise.all(busy.values());
    },
    async sweep() {
      await bringForward();
      await Promise.all(lanes.map(sweepLane));
    },
  };
}

async function sweepJob(job: Job, context: SweepContext): Promise<void> {
  switch (job.state) {
    case "reserving":
      return context.driver.abandon(job);
    case "queued":
    case "running":
      return wakeOrExpire(job, context);
    case "settling":
    case "failing":
      return finish(job, context);
    case "rejected":
      // Another process that drove it may have held its price, or pinned its references, after the refusal.
      await context.holds.release(job);
      await unpin(job, context);
      await context.store.forget(job.jobId, context.clock.now());
      return;
    case "completed":
    case "failed":
      if (job.pinsHeld) await unpin(job, context);
      else {
        // Its end must be written down before its record is removed.
        if (isUnannounced(job)) await context.announce(job);
        await context.retention.forget(job);
      }
      return;
    case "deleted":
      if (job.pinsHeld || job.outputs.length > 0) await erase(job, context);
      else await context.retention.forget(job);
  }
}

async function wakeOrExpire(job: Job, context: SweepContext): Promise<void> {
  const { leaseTime, store } = context;
  // A living worker renews the end of its job's time.
  const now = leaseTime();
  // Only where the job read here is overdue. Asking the store may read a long job.
  const expired = isOverdue(job, now) && (await store.apply(job.jobId, { kind: "expire", now }));
  if (expired) return finish(expired, context);
  // This needs no place at the upstream, which a worker may have to wait for.
  if (job.state === "running" && mayHaveBegun(job)) {
    const decided = await store.apply(job.jobId, { kind: "abandoned", now });
    if (decided?.state === "failing") return finish(decided, context);
    if (decided) return;
  }
  if (isParked(job)) {
    const offered = await store.apply(job.jobId, { kind: "offer", now });
    if (!offered) return;
    context.failPoints("offered");
  }
  if (!isHeld(job, now)) await publishWake(job, context);
}

async function unpin(job: Job, { importer, store, failPoints }: SweepContext): Promise<void> {
  if (!job.pinsHeld) return;
  await importer.unpin({ accountId: job.accountId, jobId: job.jobId });
  await store.apply(job.jobId, { kind: "unpinned" });
  failPoints("unpinned");
}
