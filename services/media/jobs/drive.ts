import type { Clock } from "#kit/clock.ts";
import { ErrorReason, isRefusal, type Reason, RefusalError } from "#kit/errors.ts";
import type { WakeQueue } from "#kit/queue/port.ts";
import type { Telemetry } from "#kit/telemetry/port.ts";
import type { JobEvents } from "../events.ts";
import type { FailPoints } from "../fail-points.ts";
import { importBeatMs, importTimeoutMs, maxReservingMs } from "../limits.ts";
import type { PinnedReference, ReferenceImporter, ReferenceInput } from "../references/port.ts";
import type { JobHolds } from "./holds.ts";
import type { Job, StoredReference } from "./job.ts";
import type { JobStore } from "./store.ts";
import { publishWake } from "./wake.ts";

/** What driving submissions needs. */
export interface DriveContext {
  clock: Clock;
  store: JobStore;
  queue: WakeQueue;
  holds: JobHolds;
  importer: ReferenceImporter;
  events: JobEvents;
  failPoints: FailPoints;
  telemetry?: Telemetry | undefined;
  /** Ends with the process's work. */
  life: AbortSignal;
}

/** How a submission ended. */
export type Driven =
  | { kind: "accepted"; job: Job }
  /** It is rejected, its idempotency key free. */
  | { kind: "refused"; refusal: RefusalError }
  /** Somebody else rejected it, for a reason of theirs: begin anew. */
  | { kind: "gone" };

/** Drives `reserving` jobs to `queued` or `rejected`. */
export interface Driver {
  /**
   * Takes up where the job stands: the hold, the references (`inputs` where the caller has their bytes), the acceptance.
   * In one process a job is driven once at a time, and who comes meanwhile gets the same end. It does not stop where a
   * caller leaves. Rejects where the outcome is unknown: the sweeper goes on then.
   */
  drive(job: Job, inputs: readonly ReferenceInput[] | undefined): Promise<Driven>;
  /** Resolves when nothing is being driven or published. */
  idle(): Promise<void>;
}

/** Makes it. */
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
      const work = driveOn(job, inputs, context, later).finally(() => driving.delete(job.jobId));
      driving.set(job.jobId, work);
      return work;
    },
    async idle() {
      await Promise.allSettled([...driving.values()]);
      await Promise.allSettled([...publishing]);
    },
  };
}

async function driveOn(
  job: Job,
  inputs: readonly ReferenceInput[] | undefined,
  context: DriveContext,
  later: (work: Promise<void>) => void,
): Promise<Driven> {
  const { clock, store, failPoints } = context;
  // Who cannot pay makes us fetch and store nothing.
  const unpaid = await hold(job, context);
  if (unpaid) return unpaid;
  failPoints("reserved");
  let current = job;
  if (!current.pinned) {
    const brought = await bringReferences(current, inputs, context);
    if ("kind" in brought) return brought;
    current = brought;
    // An import takes its time, in which an operator may have ended the hold.
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

/** Holds the job's price; answers how the job ended where it is not held. */
async function hold(job: Job, context: DriveContext): Promise<Driven | undefined> {
  try {
    if ((await context.holds.reserve(job)) === "open") return undefined;
  } catch (error) {
    if (!isRefusal(error)) throw error;
    if (!isAnswer(error) && !isTooOld(job, context.clock)) throw error;
    return reject(job, error, context);
  }
  return rejectForAll(job, ErrorReason.SERVICE_UNAVAILABLE, context);
}

/** Reasons that are billing's last word; after any other the hold may stand. */
const answers = [
  ErrorReason.INSUFFICIENT_CREDITS,
  ErrorReason.INSUFFICIENT_BALANCE,
  ErrorReason.KEY_LIMIT_EXCEEDED,
  ErrorReason.RATE_LIMIT_EXCEEDED,
] as const;

function isAnswer(refusal: RefusalError): boolean {
  return isRefusal(refusal, ...answers);
}

function isTooOld({ createdAt }: Job, clock: Clock): boolean {
  return clock.now() >= createdAt + maxReservingMs;
}

/** The state was moved on by somebody else: what it came to. */
async function driveElsewhere(job: Job, context: DriveContext): Promise<Driven> {
  const now = await context.store.find(job.jobId);
  if (now && now.state !== "rejected") return { kind: "accepted", job: now };
  // Our hold may have come after their refusal.
  await context.holds.release(job);
  await letGo(job, context);
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
  // Only now: until it was rejected, another process could still accept it. What fails here the sweeper does.
  await context.holds
    .release(rejected)
    .catch((error) => context.events.trouble("a hold could not be released", job.jobId, error));
  await letGo(rejected, context);
  return { kind: "refused", refusal };
}

/** Rejects for a reason that is not the caller's: no answer for whoever waits. */
async function rejectForAll(job: Job, reason: Reason, context: DriveContext): Promise<Driven> {
  const driven = await reject(job, new RefusalError(reason), context);
  return driven.kind === "refused" ? { kind: "gone" } : driven;
}

/** Lets go of the references; what is not done here the sweeper does. */
async function letGo(job: Job, { importer, events }: DriveContext): Promise<void> {
  if (!job.pinsHeld) return;
  const { accountId, jobId } = job;
  await importer
    .unpin({ accountId, jobId })
    .catch((error) => events.trouble("references could not be let go of", jobId, error));
}

/** The job with its references pinned, or how it ended without them. */
async function bringReferences(
  job: Job,
  inputs: readonly ReferenceInput[] | undefined,
  context: DriveContext,
): Promise<Job | Driven> {
  const { clock, store, failPoints } = context;
  const references = inputs ?? withoutBytes(job.spec.references);
  if (!references) {
    // The bytes went with the caller's request. Whoever brings them again begins anew.
    return rejectForAll(job, ErrorReason.INVALID_INPUT_REFERENCE, context);
  }
  let pinned: readonly PinnedReference[];
  try {
    pinned = await importAlive(job, references, context);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    if (isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE) && !isTooOld(job, clock)) throw error;
    return reject(job, error, context);
  }
  failPoints("imported");
  const command = { kind: "attach", pinned, now: clock.now() } as const;
  const attached = await store.apply(job.jobId, command);
  if (!attached) return driveElsewhere(job, context);
  failPoints("attached");
  return attached;
}

function withoutBytes(references: readonly StoredReference[]): ReferenceInput[] | undefined {
  const inputs = references.filter((reference) => reference.kind !== "inline");
  return inputs.length === references.length ? inputs : undefined;
}

/** Imports, and says at times that the submission lives, so that no sweeper ends it meanwhile. */
async function importAlive(
  job: Job,
  references: readonly ReferenceInput[],
  context: DriveContext,
): Promise<PinnedReference[]> {
  const { clock, store, importer, life, events } = context;
  const { jobId } = job;
  const done = new AbortController();
  const beat = async () => {
    for (;;) {
      await clock.sleep(importBeatMs, AbortSignal.any([done.signal, life]));
      await store
        .apply(jobId, { kind: "beat", now: clock.now() })
        .catch((error) => events.trouble("a submission could not beat", jobId, error));
    }
  };
  const late = new RefusalError(ErrorReason.SERVICE_UNAVAILABLE);
  const timeout = new AbortController();
  beat().catch(() => {});
  clock.sleep(importTimeoutMs, done.signal).then(
    () => timeout.abort(late),
    () => {},
  );
  try {
    const signal = AbortSignal.any([timeout.signal, life]);
    return await importer.importAll(job, references, signal);
  } finally {
    done.abort();
  }
}
