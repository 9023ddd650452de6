// Brings a submitted job to its acceptance: holds the price, imports references, wakes a worker. Or it rejects the job, and then
// nothing is held. `submit.ts` writes the job down before.

import { withinTime } from "#kit/base/abort.ts";
import { ErrorReason, isRefusal, RefusalError } from "#kit/base/errors.ts";
import type { WakeQueue } from "#kit/queue/port.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { JobEvents } from "../events.ts";
import type { FailPoints } from "../fail-points.ts";
import { importTimeoutMs, reservingBeatMs } from "../limits.ts";
import type { ReferenceImporter, ReferenceInput } from "../references/port.ts";
import { isTerminal, type Job } from "./job.ts";
import type { JobHolds } from "./job-holds.ts";
import type { JobStore } from "./store.ts";
import { publishWake } from "./wake.ts";

/** The parts that driving submissions needs. */
interface DriveContext {
  clock: Clock;
  store: JobStore;
  queue: WakeQueue;
  holds: JobHolds;
  importer: ReferenceImporter;
  events: JobEvents;
  failPoints: FailPoints;
  /** Ends with the process's work. */
  life: AbortSignal;
}

/** The end of a submission. */
export type Driven =
  | { kind: "accepted"; job: Job }
  /** It is rejected, and its idempotency key is free. */
  | { kind: "refused"; refusal: RefusalError }
  /** It is rejected for a reason that is not this caller's. Begin a new one. */
  | { kind: "gone" };

/** Drives `reserving` jobs to `queued` or `rejected`. */
export interface Driver {
  /**
   * Continues a job from its present state, for a request that waits for it: the hold, the references, the acceptance. In one process a
   * job is driven once at a time, and other calls meanwhile get the same end. It does not stop where a caller leaves. Where this
   * rejects, the job is rejected too, now or by a sweeper. So a caller that got an error may ask again without paying twice.
   */
  drive(job: Job, inputs: readonly ReferenceInput[]): Promise<Driven>;
  /** Rejects a job whose lease is over: its request has died, or got an error as answer. It is never accepted. */
  abandon(job: Job): Promise<void>;
  /** Resolves when nothing is being driven or published. */
  idle(): Promise<void>;
}

/** Makes a driver. */
export function createDriver(context: DriveContext): Driver {
  const driving = new Map<string, Promise<Driven>>();
  const publishing = new Set<Promise<void>>();
  const later = (work: Promise<void>) => {
    publishing.add(work);
    work.finally(() => publishing.delete(work));
  };
  return {
    drive(job, inputs) {
      const known = driving.get(job.jobId);
      if (known) return known;
      const work = driveLeased(job, inputs, context, later).finally(() =>
        driving.delete(job.jobId),
      );
      driving.set(job.jobId, work);
      return work;
    },
    async abandon(job) {
      // Its request lives in this process. Only its beats failed.
      if (driving.has(job.jobId)) return;
      await reject(job, new RefusalError(ErrorReason.SERVICE_UNAVAILABLE), context);
    },
    async idle() {
      await Promise.allSettled([...driving.values()]);
      await Promise.allSettled([...publishing]);
    },
  };
}

/** Drives under a lease that is renewed meanwhile. Where its caller gets an error, it rejects the job. */
async function driveLeased(
  job: Job,
  inputs: readonly ReferenceInput[],
  context: DriveContext,
  later: (work: Promise<void>) => void,
): Promise<Driven> {
  const done = new AbortController();
  beat(job, context, done.signal).catch(() => {});
  try {
    return await driveOn(job, inputs, context, later);
  } catch (error) {
    const refusal = isRefusal(error) ? error : new RefusalError(ErrorReason.SERVICE_UNAVAILABLE);
    // Where the store takes no rejection now, the lease ends, and a sweeper rejects the job.
    const driven = await reject(job, refusal, context).catch(() => undefined);
    if (!driven || driven.kind === "refused") throw error;
    return driven;
  } finally {
    done.abort();
  }
}

/** Renews the lease of the submission, so that no sweeper rejects it meanwhile. Rejects when `signal` aborts. */
async function beat({ jobId }: Job, context: DriveContext, signal: AbortSignal): Promise<never> {
  const { clock, store, events } = context;
  for (;;) {
    await clock.sleep(reservingBeatMs, signal);
    await store
      .renew(jobId, { kind: "beat", now: clock.now() })
      .catch((error) => events.trouble("a submission could not beat", jobId, error));
  }
}

async function driveOn(
  job: Job,
  inputs: readonly ReferenceInput[],
  context: DriveContext,
  later: (work: Promise<void>) => void,
): Promise<Driven> {
  const { clock, store, failPoints } = context;
  // Where an account cannot pay, no reference is fetched or stored.
  const unpaid = await hold(job, context);
  if (unpaid) return unpaid;
  failPoints("reserved");
  let current = job;
  if (!current.pinned) {
    const brought = await bringReferences(current, inputs, context);
    if ("kind" in brought) return brought;
    current = brought;
    // An import takes time, in which an operator may have ended the hold.
    const ended = await hold(current, context);
    if (ended) return ended;
  }
  const accepted = await store.apply(current.jobId, { kind: "accept", now: clock.now() });
  if (!accepted) return driveElsewhere(current, context);
  failPoints("accepted");
  // The answer does not wait for the queue.
  later(publishWake(accepted, context));
  return { kind: "accepted", job: accepted };
}

/** Holds the job's price. Answers how the job ended where the hold was ended before. */
async function hold(job: Job, context: DriveContext): Promise<Driven | undefined> {
  if ((await context.holds.reserve(job)) === "open") return undefined;
  const driven = await reject(job, new RefusalError(ErrorReason.SERVICE_UNAVAILABLE), context);
  return driven.kind === "refused" ? { kind: "gone" } : driven;
}

/** Another process changed the state. Answers the result of that. */
async function driveElsewhere(job: Job, context: DriveContext): Promise<Driven> {
  const now = await context.store.find(job.jobId);
  if (now && now.state !== "rejected") {
    // The job ended and unpinned its references before this process pinned them. No other step would unpin these.
    const hasEnded = isTerminal(now) || now.state === "deleted";
    if (hasEnded && !now.pinsHeld) await tryUnpin(job, context);
    return { kind: "accepted", job: now };
  }
  // Our hold may have come after the other process's refusal.
  await context.holds.release(job);
  await tryUnpin(job, context);
  return { kind: "gone" };
}

async function reject(job: Job, refusal: RefusalError, context: DriveContext): Promise<Driven> {
  const { reason, message, param } = refusal;
  const failure = { reason, message, param };
  const command = { kind: "reject", failure, now: context.clock.now() } as const;
  const rejected = await context.store.apply(job.jobId, command);
  if (!rejected) return driveElsewhere(job, context);
  context.failPoints("rejected");
  context.events.rejected(rejected, failure);
  // Only now, because another process could still accept the job until it was rejected. The sweeper repeats this where it fails.
  await context.holds
    .release(rejected)
    .catch((error) => context.events.trouble("a hold could not be released", job.jobId, error));
  await tryUnpin(rejected, context);
  return { kind: "refused", refusal };
}

/** Unpins the references. Where that fails, the sweeper does it. */
async function tryUnpin(job: Job, { importer, events }: DriveContext): Promise<void> {
  if (!job.pinsHeld) return;
  const { accountId, jobId } = job;
  await importer
    .unpin({ accountId, jobId })
    .catch((error) => events.trouble("references could not be let go of", jobId, error));
}

/** The job with its references pinned, or its end without them. */
async function bringReferences(
  job: Job,
  references: readonly ReferenceInput[],
  context: DriveContext,
): Promise<Job | Driven> {
  const { clock, store, importer, life, failPoints } = context;
  const late = () => new RefusalError(ErrorReason.SERVICE_UNAVAILABLE);
  const pinned = await withinTime({ clock, ms: importTimeoutMs, late }, (signal) =>
    importer.importAll(job, references, AbortSignal.any([signal, life])),
  );
  failPoints("imported");
  const command = { kind: "attach", pinned, now: clock.now() } as const;
  const attached = await store.apply(job.jobId, command);
  if (!attached) return driveElsewhere(job, context);
  failPoints("attached");
  return attached;
}
