import { Readable } from "node:stream";
import type { BlobStore } from "#kit/blobs.ts";
import type { Clock } from "#kit/clock.ts";
import { ErrorReason, errorRow, isRefusal, type Reason } from "#kit/errors.ts";
import type { Ids } from "#kit/ids.ts";
import type { WakeQueue } from "#kit/queue/port.ts";
import { noTelemetry, type Telemetry } from "#kit/telemetry/port.ts";
import { errorType, traced } from "#kit/telemetry/traced.ts";
import {
  type GeneratedOutput,
  GenerationError,
  type GenerationRequest,
  type GenerationTask,
  type MediaUpstreams,
  NotTakenError,
} from "../generate/port.ts";
import { type FinishContext, finish } from "../jobs/finish.ts";
import { type Job, type JobOutput, mayBegin, upstreamOf } from "../jobs/job.ts";
import type { JobCommand } from "../jobs/lifecycle.ts";
import { outputKey } from "../jobs/outputs.ts";
import { publishWake, traceOf } from "../jobs/wake.ts";
import {
  claimRetryMs,
  firstWaitMs,
  maxAttempts,
  maxSetAsideMs,
  maxWaitMs,
  setAsideMs,
} from "../limits.ts";
import { pixelsOf } from "../requests/image.ts";
import { createLease, type Lease } from "./lease.ts";
import { createProgress } from "./progress.ts";

/** What an attempt needs. */
export interface AttemptContext extends FinishContext {
  clock: Clock;
  ids: Ids;
  blobs: BlobStore;
  queue: WakeQueue;
  upstreams: Pick<MediaUpstreams, "generate">;
  telemetry?: Telemetry | undefined;
}

/** One claim of a job, while it is worked on. */
export interface Attempt {
  readonly job: Job;
  /** The upstream has named its task, so that another worker can take it up at once. */
  isResumable(): boolean;
  /** Stops, and makes the job claimable again without counting the attempt. */
  handBack(): void;
  /** Resolves when nothing of it is left; never rejects. */
  readonly done: Promise<void>;
}

/** Begins to work on a job that was claimed at `claimedAt`, by the monotonic clock. */
export function beginAttempt(job: Job, claimedAt: number, context: AttemptContext): Attempt {
  const lease = createLease(job, claimedAt, context);
  let isResumable = job.resumeId !== undefined;
  const onResumable = () => {
    isResumable = true;
  };
  const { telemetry = noTelemetry } = context;
  // Whoever finds the job, by whichever way, goes on with the trace of its submission.
  const done = telemetry
    .join(traceOf(job), () =>
      traced(telemetry, spanOf(job), () => work(job, lease, onResumable, context)),
    )
    .catch((error) => {
      // The lease runs out, and whoever claims the job next begins where this one stood.
      context.events.trouble("an attempt could not be ended", job.jobId, error);
    })
    .finally(() => lease[Symbol.dispose]());
  return { job, isResumable: () => isResumable, handBack: lease.handBack, done };
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
  onResumable: () => void,
  context: AttemptContext,
): Promise<void> {
  const { clock, store, events } = context;
  let outputs: JobOutput[];
  try {
    context.failPoints("claimed");
    outputs = await generate(job, lease, onResumable, context);
  } catch (error) {
    context.telemetry?.active()?.fail(errorType(error));
    return giveUp(job, lease, error, context);
  }
  const { jobId, fence } = job;
  const won = await untilStored(lease, clock, () =>
    store.apply(jobId, {
      kind: "win",
      fence,
      outputs,
      now: clock.now(),
      deadline: lease.deadline(),
    }),
  );
  if (!won) return events.leaseLost(job);
  lease[Symbol.dispose]();
  await finish(won, context);
}

/** A store of ours that is away costs a job no attempt: it is waited for, as long as the lease lasts. */
async function untilStored<T>(lease: Lease, clock: Clock, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (lease.signal.aborted || !isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE)) throw error;
      await clock.sleep(claimRetryMs, lease.signal);
    }
  }
}

async function generate(
  job: Job,
  lease: Lease,
  onResumable: () => void,
  context: AttemptContext,
): Promise<JobOutput[]> {
  const { blobs, clock, ids, store, failPoints, upstreams } = context;
  const { jobId, fence } = job;
  const pinned = job.pinned ?? [];
  const keys = new Set<string>();
  let objects = 0;
  /** A store that is away is waited for: without the note, a generation could be begun twice, or be lost. */
  const note = async (command: JobCommand) => {
    lease.signal.throwIfAborted();
    if (await untilStored(lease, clock, () => store.apply(jobId, command))) return;
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
    upstream: upstreamOf(job),
    references: pinned.map(({ mimeType, sizeBytes, width, height, blobKey }) => ({
      mimeType,
      sizeBytes,
      width,
      height,
      open: () => untilStored(lease, clock, () => blobs.openRead(blobKey)),
    })),
    resumeId: job.resumeId,
    async sending() {
      await note({ kind: "sending", fence });
      failPoints("sending");
    },
    async saveResumeId(resumeId) {
      failPoints("upstream-accepted");
      await note({ kind: "resumable", fence, resumeId });
      onResumable();
      failPoints("resumable");
    },
    progress: progress.report,
    async store(source) {
      lease.signal.throwIfAborted();
      const put = async (bytes: Readable) => {
        const blobKey = outputKey(jobId, fence, objects++);
        return { blobKey, ...(await blobs.put(blobKey, bytes, lease.signal)) };
      };
      // What lies in memory may be all that there is of a generation that was paid for.
      const stored =
        source instanceof Uint8Array
          ? await untilStored(lease, clock, () => put(Readable.from([source])))
          : await put(source);
      keys.add(stored.blobKey);
      failPoints("stored");
      return stored;
    },
    signal: lease.signal,
  };
  const outputs = await upstreams.generate(task);
  lease.signal.throwIfAborted();
  checkOutputs(outputs, keys, task.request);
  return outputs.map((output) => ({ ...output, fileId: ids.make("file") }));
}

/** An image that follows its reference's shape is told that shape now: at acceptance nobody knew it. */
function requestOf({ spec, pinned }: Job): GenerationRequest {
  const { request } = spec;
  const [reference] = pinned ?? [];
  if (request.kind !== "image" || !reference) return request;
  return { ...request, ...pixelsOf(request, reference) };
}

/** Whatever an upstream's driver does: a job has as many outputs as it asked for, and this attempt has stored them. */
function checkOutputs(
  outputs: readonly GeneratedOutput[],
  stored: ReadonlySet<string>,
  request: GenerationRequest,
): void {
  const wanted = request.kind === "image" ? request.count : 1;
  const keys = new Set(outputs.map(({ blobKey }) => blobKey));
  const isWhole = outputs.length === wanted && keys.size === wanted;
  if (isWhole && outputs.every(({ blobKey }) => stored.has(blobKey))) return;
  throw new GenerationError("failed", "the outputs are not those that were asked for");
}

async function giveUp(
  job: Job,
  lease: Lease,
  error: unknown,
  context: AttemptContext,
): Promise<void> {
  const { clock, store, events } = context;
  const { jobId, fence } = job;
  const now = clock.now();
  switch (lease.ended()) {
    case "lost":
      // Somebody else has it, or will: nothing of it is touched.
      return events.leaseLost(job);
    case "deadline":
      return lose(job, ErrorReason.UPSTREAM_TIMEOUT, context);
    case "handed-back": {
      await lease.stop();
      const back = await store.apply(jobId, { kind: "hand-back", fence, now });
      if (!back) return events.leaseLost(job);
      context.failPoints("handed-back");
      events.givenBack(back, "stopping");
      return publishWake(back, context);
    }
    case undefined:
  }
  if (error instanceof NotTakenError) return waitOut(job, lease, error, context);
  const fault = error instanceof GenerationError ? error.fault : "unknown";
  if (fault === "failed" || fault === "content_policy") {
    const isPolicy = fault === "content_policy";
    const { CONTENT_POLICY_VIOLATION, GENERATION_FAILED } = ErrorReason;
    return lose(job, isPolicy ? CONTENT_POLICY_VIOLATION : GENERATION_FAILED, context);
  }
  if (!(error instanceof GenerationError) && !isRefusal(error)) {
    events.trouble("an attempt failed in a way of ours", jobId, error);
  }
  await lease.stop();
  await setAside(job, fault === "broke_off", context);
}

/**
 * The upstream may have done the work, and may not: another attempt takes it up, or repeats it where that pays for nothing
 * twice. The next upstream gets it only where this one has certainly nothing in hand.
 */
async function setAside(job: Job, isOver: boolean, context: AttemptContext): Promise<void> {
  const { clock, store, events } = context;
  const { jobId, fence, attempts } = job;
  const found = await store.find(jobId);
  if (!found) return events.leaseLost(job);
  const current = isOver ? { ...found, sent: job.sent } : found;
  const isResumable = current.resumeId !== undefined;
  if (!isResumable && (attempts >= maxAttempts || !mayBegin(current))) {
    return lose(job, ErrorReason.GENERATION_FAILED, context);
  }
  const now = clock.now();
  const until = now + pauseAfter(fence, setAsideMs, maxSetAsideMs);
  const { sent } = current;
  const nextUpstream = !isResumable && !sent && attempts > 1;
  const command = { kind: "set-aside", fence, until, nextUpstream, sent, now } as const;
  const aside = await store.apply(jobId, command);
  if (aside) events.givenBack(aside, "unknown");
  else events.leaseLost(job);
}

/** Nothing was taken: the job goes back to the queue, to be offered to the next upstream now, or to the first one later. */
async function waitOut(
  job: Job,
  lease: Lease,
  error: NotTakenError,
  context: AttemptContext,
): Promise<void> {
  const { clock, store, events } = context;
  const { jobId, fence, upstreamIndex, spec, wait } = job;
  const { refusal, retryAfterMs, isCertain } = error;
  // Where an earlier attempt, or this one, may have reached the upstream all the same, no other one gets the job.
  const sent = job.sent || !isCertain;
  const nextUpstream = !sent && spec.upstreams.length > 1;
  const isLeft = nextUpstream && upstreamIndex + 1 < spec.upstreams.length;
  const rounds = Math.floor((wait?.times ?? 0) / spec.upstreams.length) + 1;
  const pauseMs = Math.max(pauseAfter(rounds, firstWaitMs, maxWaitMs), retryAfterMs ?? 0);
  // Unless this is written down, the next worker takes it that the upstream has begun.
  const back = await untilStored(lease, clock, () => {
    const now = clock.now();
    const until = isLeft ? now : now + pauseMs;
    return store.apply(jobId, { kind: "wait", fence, refusal, until, nextUpstream, sent, now });
  });
  if (!back) return events.leaseLost(job);
  context.failPoints("waiting");
  events.givenBack(back, "not_taken");
}

/** Ms: twice as long each time. */
function pauseAfter(times: number, firstMs: number, longestMs: number): number {
  return Math.min(firstMs * 2 ** Math.min(times - 1, 20), longestMs);
}

async function lose(job: Job, reason: Reason, context: AttemptContext): Promise<void> {
  const { clock, store, events } = context;
  const { jobId, fence } = job;
  const failure = { reason, message: errorRow(reason).message, param: undefined };
  const lost = await store.apply(jobId, { kind: "lose", fence, failure, now: clock.now() });
  if (lost) await finish(lost, context);
  else events.leaseLost(job);
}
