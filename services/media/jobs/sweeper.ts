import type { Clock } from "#kit/clock.ts";
import type { JobEvents } from "../events.ts";
import type { FailPoints } from "../fail-points.ts";
import { sweepBatch, sweepConcurrency, sweepIntervalMs, sweepRetryMs } from "../limits.ts";
import type { ReferenceImporter } from "../references/port.ts";
import type { Driver } from "./drive.ts";
import { type FinishContext, finish } from "./finish.ts";
import { isParked, isTerminal, type Job, type JobState } from "./job.ts";
import type { Retention } from "./retention.ts";
import { publishWake, type WakeContext } from "./wake.ts";

/** What sweeping needs. */
export interface SweepContext extends FinishContext, WakeContext {
  clock: Clock;
  driver: Driver;
  importer: ReferenceImporter;
  retention: Retention;
  events: JobEvents;
  failPoints: FailPoints;
}

/** Drives on every job that is due: whoever had it is dead, away, or slow. */
export interface Sweeper {
  /** Looks every 500 ms until `signal` aborts; resolves when what was under way has ended. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /** Looks once, at what is due now. */
  sweep(): Promise<void>;
}

type Lane = readonly JobState[];

/** Each lane waits for others of its own alone: wake-ups do not queue up behind a billing that is away. */
const lanes: readonly Lane[] = [
  ["queued", "running"],
  ["reserving", "settling", "failing"],
  ["completed", "failed", "rejected"],
];

/** Makes it; any number of them may sweep at once. */
export function createSweeper(context: SweepContext): Sweeper {
  const { clock, store, events } = context;

  const driveOn = async (job: Job) => {
    try {
      await sweepJob(job, context);
      if (!isTerminal(job)) events.swept(job.state);
    } catch (error) {
      events.trouble("a due job could not be driven on", job.jobId, error);
    }
  };
  const sweepLane = async (states: Lane) => {
    const now = clock.now();
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
        const free = lanes.filter((lane) => !busy.has(lane));
        // Most looks find nothing: one tells for all lanes.
        const isAnyDue = await store.isAnyDue(free.flat(), clock.now()).catch(unread);
        if (isAnyDue && !signal.aborted) free.forEach(begin);
        await clock.sleep(sweepIntervalMs, signal).catch(() => {});
      }
      await Promise.all(busy.values());
    },
    async sweep() {
      await Promise.all(lanes.map(sweepLane));
    },
  };
}

async function sweepJob(job: Job, context: SweepContext): Promise<void> {
  switch (job.state) {
    case "reserving":
      await context.driver.drive(job, undefined);
      return;
    case "queued":
    case "running":
      return wakeOrExpire(job, context);
    case "settling":
    case "failing":
      return finish(job, context);
    case "rejected":
      // Somebody who was still joining in may have held, or pinned, after the refusal.
      await context.holds.release(job);
      await letGo(job, context);
      await context.store.forget(job.jobId, context.clock.now());
      return;
    case "completed":
    case "failed":
      if (job.pinsHeld) await letGo(job, context);
      else await context.retention.forget(job);
  }
}

async function wakeOrExpire(job: Job, context: SweepContext): Promise<void> {
  const { clock, store } = context;
  const now = clock.now();
  const expired = await store.apply(job.jobId, { kind: "expire", now });
  if (expired) return finish(expired, context);
  if (isParked(job)) {
    const offered = await store.apply(job.jobId, { kind: "offer", now });
    if (!offered) return;
    context.failPoints("offered");
  }
  const isHeld = job.state === "running" && job.lease !== undefined && job.lease.until > now;
  if (!isHeld) await publishWake(job, context);
}

async function letGo(job: Job, { importer, store, failPoints }: SweepContext): Promise<void> {
  if (!job.pinsHeld) return;
  await importer.unpin({ accountId: job.accountId, jobId: job.jobId });
  await store.apply(job.jobId, { kind: "unpinned" });
  failPoints("unpinned");
}
