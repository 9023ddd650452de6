// Works on one claimed job: asks the upstream, notes each step, stores the outputs, and ends or gives back the job. `worker.ts`
// begins it.

import type { Span } from "@opentelemetry/api";
import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import type { Ids } from "#kit/base/ids.ts";
import type { WakeQueue } from "#kit/queue/port.ts";
import type { BlobStore } from "#kit/store/blobs.ts";
import { errorType, failSpan, joinTrace, traced } from "#kit/telemetry/spans.ts";
import type { Clock } from "#kit/time/clock.ts";
import {
  GenerationError,
  type GenerationFault,
  type GenerationRequest,
  type GenerationTask,
  type MediaUpstreams,
  NotTakenError,
} from "../../upstreams/media/port.ts";
import { jobAbilitiesOf } from "../../upstreams/protocols.ts";
import { cancelAtUpstream } from "../jobs/cancel-upstream.ts";
import { type FinishContext, finish } from "../jobs/finish.ts";
import {
  failureFor,
  type Job,
  type JobFailure,
  type JobOutput,
  upstreamOf,
  wasCancelled,
} from "../jobs/job.ts";
import type { JobCommand } from "../jobs/lifecycle.ts";
import { failureOnceLost, isAnswerAwaited } from "../jobs/lost-answer.ts";
import { checkOutputs } from "../jobs/outputs.ts";
import { publishWake, traceOf } from "../jobs/wake.ts";
import { cancelGraceMs, maxSetAsideMs, setAsideMs } from "../limits.ts";
import { pixelsOf } from "../requests/image.ts";
import { untilStored } from "../until-stored.ts";
import { createLease, type Lease } from "./lease.ts";
import type { Marks } from "./marks.ts";
import { passOn, placeOf } from "./passing-on.ts";
import { createProgress } from "./progress.ts";
import { createStoredOutputs, type StoredOutputs } from "./stored-outputs.ts";
import { pauseAfter, takenByNone, turnedAway } from "./turned-away.ts";

/** The parts that an attempt needs. */
export interface AttemptContext extends FinishContext {
  clock: Clock;
  ids: Ids;
  blobs: BlobStore;
  queue: WakeQueue;
  upstreams: Pick<MediaUpstreams, "generate" | "cancel" | "placeToBegin">;
  marks: Marks;
}

/** One claim of a job, while it is worked on. */
export interface Attempt {
  readonly job: Job;
  /** Has the upstream named its task, so that another worker can resume it at once? */
  isResumable(): boolean;
  /** Stops, and makes the job claimable again without counting the attempt. */
  handBack(): void;
  /**
   * Stops, because its job was cancelled. Where a request to the upstream is under way, and the upstream could cancel its task, it
   * stops once the upstream has named that.
   */
  cancel(): void;
  /** Resolves when the attempt is completely over. Never rejects. */
  readonly done: Promise<void>;
}

/** Begins to work on a job that was claimed at `claimedAt`, by the monotonic clock. */
export function beginAttempt(job: Job, claimedAt: number, context: AttemptContext): Attempt {
  const begun: Begun = {
    resumeId: job.resumeId,
    isResumable: job.resumeId !== undefined,
    isSent: job.sent,
    named: Promise.withResolvers(),
  };
  const lease = createLease(job, claimedAt, {
    ...context,
    // For the stored job, which may lack the upstream's id of the task.
    isAnswerAwaited: () => !begun.isResumable && isAnswerAwaited({ ...job, sent: begun.isSent }),
  });
  const over = new AbortController();
  // A worker that claims the job continues the trace of its submission.
  const done = joinTrace(traceOf(job), () =>
    traced(spanOf(job), (span) => work(job, lease, begun, context, span)),
  )
    .catch((error) => {
      // The lease ends, and the worker that claims the job next continues from here.
      context.events.trouble("an attempt could not be ended", job.jobId, error);
    })
    .finally(() => {
      lease[Symbol.dispose]();
      over.abort();
    });
  let isCancelling = false;
  const cancel = async () => {
    if (isCancelling) return;
    isCancelling = true;
    if (begun.isSent && begun.resumeId === undefined && canCancel(job)) {
      lease.cancelling();
      const late = context.clock.sleep(cancelGraceMs, over.signal).catch(() => {});
      await Promise.race([begun.named.promise, late]);
    }
    lease.cancel();
  };
  return {
    job,
    isResumable: () => begun.isResumable,
    handBack: lease.handBack,
    cancel: () => void cancel(),
    done,
  };
}

/** The progress of an attempt at its upstream. */
interface Begun {
  /** The upstream's id of the task. */
  resumeId: string | undefined;
  /** Is the id stored? */
  isResumable: boolean;
  /** Was a request that begins the generation sent, by this attempt or an earlier one? */
  isSent: boolean;
  /** Resolves when the upstream has named its task. */
  named: PromiseWithResolvers<void>;
}

/** Could the job's upstream cancel a task that it has named? */
function canCancel(job: Job): boolean {
  return jobAbilitiesOf(upstreamOf(job), job.spec.kind)?.cancel === true;
}

function spanOf({ jobId, attempts, spec: { kind } }: Job) {
  return {
    family: "job.run",
    name: `run ${kind} job`,
    attributes: {
      "genmesh.job.id": jobId,
      "genmesh.job.kind": kind,
      "genmesh.job.attempt": attempts,
    },
  } as const;
}

async function work(
  job: Job,
  lease: Lease,
  begun: Begun,
  context: AttemptContext,
  span: Span,
): Promise<void> {
  const stored = createStoredOutputs(job, lease.signal, context);
  try {
    await makeOutputs(job, lease, begun, stored, context, span);
  } finally {
    // The job comes first. It does not wait for this.
    await stored.discard();
  }
}

async function makeOutputs(
  job: Job,
  lease: Lease,
  begun: Begun,
  stored: StoredOutputs,
  context: AttemptContext,
  span: Span,
): Promise<void> {
  const { clock, store } = context;
  const place = placeOf(job, context);
  if (place !== job.upstreamIndex) {
    if (!(await passOn(job, place, lease, context))) await stopped(job, begun, context);
    return;
  }
  let outputs: JobOutput[];
  try {
    context.failPoints("claimed");
    outputs = await generate(job, lease, begun, stored, context);
  } catch (error) {
    failSpan(span, errorType(error));
    return giveUp(job, lease, begun, error, context);
  }
  const { jobId, fence } = job;
  stored.offered();
  const won = await untilStored({ clock, signal: lease.signal }, () =>
    store.apply(jobId, {
      kind: "win",
      fence,
      outputs,
      now: clock.now(),
      deadline: lease.deadline(),
    }),
  );
  if (!won) return stopped(job, begun, context);
  stored.won(outputs);
  lease[Symbol.dispose]();
  await finish(won, context);
}

async function generate(
  job: Job,
  lease: Lease,
  begun: Begun,
  stored: StoredOutputs,
  context: AttemptContext,
): Promise<JobOutput[]> {
  const { blobs, clock, ids, store, failPoints, upstreams } = context;
  const { jobId, fence } = job;
  const pinned = job.pinned ?? [];
  const storing = { clock, signal: lease.signal };
  /** Waits while the store is away. Without the note, a generation could begin twice, or be lost. */
  const note = async (command: JobCommand) => {
    lease.signal.throwIfAborted();
    if (await untilStored(storing, () => store.apply(jobId, command))) return;
    lease.lose();
    lease.signal.throwIfAborted();
  };
  await using progress = createProgress(job, lease.signal, context);
  const task: GenerationTask = {
    accountId: job.accountId,
    jobId,
    idempotencyKey: jobId,
    request: requestOf(job),
    upstreamModel: job.spec.upstreamModel,
    call: job.spec.call,
    upstream: upstreamOf(job),
    references: pinned.map(({ mimeType, sizeBytes, width, height, blobKey }) => ({
      mimeType,
      sizeBytes,
      width,
      height,
      open: () => untilStored(storing, () => blobs.openRead(blobKey)),
    })),
    resumeId: job.resumeId,
    async sending() {
      await note({ kind: "sending", fence });
      begun.isSent = true;
      failPoints("sending");
    },
    async saveResumeId(resumeId) {
      failPoints("upstream-accepted");
      // A cancelled job does not note the id any longer, but the upstream is still asked to cancel by it.
      begun.resumeId = resumeId;
      begun.named.resolve();
      await note({ kind: "resumable", fence, resumeId });
      begun.isResumable = true;
      failPoints("resumable");
    },
    progress: progress.report,
    store: stored.store,
    signal: lease.signal,
  };
  const outputs = await upstreams.generate(task);
  lease.signal.throwIfAborted();
  checkOutputs(outputs, stored.keys, task.request);
  return outputs.map((output) => ({ ...output, fileId: ids.make("file") }));
}

/** An image that follows its reference's shape gets that shape now. At acceptance it was unknown. */
function requestOf({ spec, pinned }: Job): GenerationRequest {
  const { request } = spec;
  const [reference] = pinned ?? [];
  if (request.kind !== "image" || !reference) return request;
  return { ...request, ...pixelsOf(request, reference) };
}

async function giveUp(
  job: Job,
  lease: Lease,
  begun: Begun,
  error: unknown,
  context: AttemptContext,
): Promise<void> {
  const { clock, store, events } = context;
  const { jobId, fence } = job;
  const now = clock.now();
  switch (lease.ended()) {
    case "lost":
    case "cancelled":
      return stopped(job, begun, context);
    case "deadline":
      return fail(job, lease, begun, failureFor(ErrorReason.UPSTREAM_TIMEOUT), context);
    case "handed-back": {
      await lease.stop();
      const back = await store.apply(jobId, { kind: "hand-back", fence, now });
      if (!back) return stopped(job, begun, context);
      // The upstream may have begun the generation, and cannot be asked for its answer.
      if (back.state === "failing") return finish(back, context);
      context.failPoints("handed-back");
      events.givenBack(back, "stopping");
      return publishWake(back, context);
    }
    case undefined:
  }
  if (error instanceof NotTakenError) return waitOut(job, lease, begun, error, context);
  const fault = error instanceof GenerationError ? error.fault : "unknown";
  const failure = failureOf(fault);
  if (failure) return fail(job, lease, begun, failure, context);
  if (!(error instanceof GenerationError) && !isRefusal(error)) {
    events.trouble("an attempt failed in a way of ours", jobId, error);
  }
  await setAside(job, lease, begun, fault === "broke_off", context);
}

/** The failure of a job with a final fault. Undefined where another attempt may succeed. */
function failureOf(fault: GenerationFault): JobFailure | undefined {
  if (fault === "failed") return failureFor(ErrorReason.GENERATION_FAILED);
  if (fault === "content_policy") return failureFor(ErrorReason.CONTENT_POLICY_VIOLATION);
  return fault === "unavailable" ? takenByNone() : undefined;
}

/**
 * The upstream may or may not have done the work. Another attempt resumes it, or repeats it where the repeat is not paid for twice. The
 * next upstream gets the job only where this one has surely no work on it.
 */
async function setAside(
  job: Job,
  lease: Lease,
  begun: Begun,
  isOver: boolean,
  context: AttemptContext,
): Promise<void> {
  const { clock, store, events } = context;
  const { jobId, fence, attempts } = job;
  const found = await untilStored({ clock, signal: lease.signal }, () => store.find(jobId));
  if (!found) return stopped(job, begun, context);
  const current = isOver ? { ...found, sent: job.sent } : found;
  const failure = failureOnceLost({ ...current, attempts });
  if (failure) return fail(job, lease, begun, failure, context);
  await lease.stop();
  const now = clock.now();
  const until = now + pauseAfter(fence, setAsideMs, maxSetAsideMs);
  const { sent } = current;
  const nextUpstream = current.resumeId === undefined && !sent && attempts > 1;
  const command = { kind: "set-aside", fence, until, nextUpstream, sent, now } as const;
  const aside = await store.apply(jobId, command);
  if (aside) events.givenBack(aside, "unknown");
  else await stopped(job, begun, context);
}

/** The upstream did not take the job. It goes back to the queue, to be offered to the next upstream now, or to the first one later. */
async function waitOut(
  job: Job,
  lease: Lease,
  begun: Begun,
  error: NotTakenError,
  context: AttemptContext,
): Promise<void> {
  const { clock, store, events } = context;
  const { jobId, fence } = job;
  const { refusal } = error;
  const next = turnedAway(job, error, clock.now());
  if (next.kind === "fails") return fail(job, lease, begun, next.failure, context);
  const { pauseMs, nextUpstream, sent } = next;
  // If this is not written down, the next worker assumes that the upstream has begun.
  const back = await untilStored({ clock, signal: lease.signal }, () => {
    const now = clock.now();
    const until = now + pauseMs;
    return store.apply(jobId, { kind: "wait", fence, refusal, until, nextUpstream, sent, now });
  });
  if (!back) return stopped(job, begun, context);
  context.failPoints("waiting");
  events.givenBack(back, "not_taken");
}

async function fail(
  job: Job,
  lease: Lease,
  begun: Begun,
  failure: JobFailure,
  context: AttemptContext,
): Promise<void> {
  const { clock, store } = context;
  const { jobId, fence } = job;
  // If this is not written down, the next worker asks the upstream again, or waits for its answer without success.
  const lost = await untilStored({ clock, signal: lease.signal }, () =>
    store.apply(jobId, { kind: "lose", fence, failure, now: clock.now() }),
  );
  if (lost) await finish(lost, context);
  else await stopped(job, begun, context);
}

/**
 * The job does not belong to this worker any longer, and this worker does not change it. The process that ends a cancelled job asks the
 * upstream to cancel it by the stored id. Where the id came too late for that, only this worker knows it.
 */
async function stopped(job: Job, begun: Begun, context: AttemptContext): Promise<void> {
  const { store, events } = context;
  const found = await store.find(job.jobId).catch(() => undefined);
  if (!found || !wasCancelled(found)) return events.leaseLost(job);
  events.stoppedCancelled(job);
  if (begun.resumeId !== found.resumeId) await cancelAtUpstream(found, begun.resumeId, context);
}
