import { ErrorReason, errorRow, type Reason } from "#kit/base/errors.ts";
import type { ModelCall, Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { GeneratedOutput, GenerationRequest, Refusal } from "../../upstreams/media/port.ts";
import { maxEvents, maxQueuedMs, reservingLeaseMs } from "../limits.ts";
import type { PinnedReference, ReferenceInput } from "../references/port.ts";

/** What a job makes. */
export type MediaKind = GenerationRequest["kind"];

/** All kinds. */
export const mediaKinds: readonly MediaKind[] = ["image", "video", "music"];

/**
 * A job's states, inside: `reserving → queued → running → settling → completed`, `reserving → rejected`,
 * `queued | running → failing → failed`, `completed | failed → deleted`. Never backwards.
 */
export type JobState =
  /** Written down; its references are brought in and its price is held. */
  | "reserving"
  /** Accepted: its price is held. */
  | "queued"
  /** A worker has begun it. */
  | "running"
  /** Its outputs have won and are in our store; the price is being charged. */
  | "settling"
  /** Charged. */
  | "completed"
  /** Never accepted; its idempotency key is free again. Never shown. */
  | "rejected"
  /** It has failed; its hold is being released. */
  | "failing"
  /** Its hold has ended: released, but for {@link owedOf}. */
  | "failed"
  /** Its caller deleted it. Never shown; what is left of it says that its idempotency key was used. */
  | "deleted";

/** A reference as a caller gave it, without bytes: those of a data URI are not written down. */
export type StoredReference = ReferenceInput | { kind: "inline"; param: string };

/** What a job is to do. Nothing of it changes but what the caller wrote, which goes when it is of no use any more. */
export interface JobSpec {
  kind: MediaKind;
  /** Public id of the model. */
  model: string;
  modelName: string;
  /** "t2v" or "i2v"; "instrumental" or "lyrics"; empty for images. */
  mode: string;
  /** The snapshot that it was accepted under, and lives by. */
  catalogVersion: string;
  request: GenerationRequest;
  /** Until they are in the account's storage. */
  references: readonly StoredReference[];
  /** What the model is called upstream. */
  upstreamModel: string;
  /** How it is called there for this request; absent where its upstreams are not called by a template. */
  call?: ModelCall;
  /** At least one, in the order of trying. */
  upstreams: readonly Upstream[];
  /** Credits; held at acceptance, charged at completion. */
  price: bigint;
  /** The caller's notes on it, name and value, shown with the job until it is deleted. */
  metadata?: readonly (readonly [string, string])[] | undefined;
  /** The trace of its submission (W3C), which later work on the job continues. */
  traceparent?: string;
  /** The caller's HTTP request that submitted it. */
  requestId?: string;
}

/** Where an idempotency key counts: one job at most has it. */
export interface JobSlot {
  /** Key id and route. */
  scope: string;
  /** The caller's. */
  key: string;
}

/** The worker that has a running job. */
interface JobLease {
  /** Empty: none, though a worker that was lost may still bring its outputs. */
  owner: string;
  /** Ms since the epoch; from then on any worker may claim the job. */
  until: number;
  /** This claim was counted as an attempt. */
  counted: boolean;
}

/** How often upstreams would not take the job, and when it is offered again. */
export interface JobWait {
  /** What the last one that was asked did instead. */
  refusal: Refusal;
  times: number;
  /** Ms since the epoch; no worker claims the job before. Undefined: that time has come. */
  until: number | undefined;
  /** As `emptySinceOf` in lifecycle.ts says; as of the last refusal. */
  emptySince?: number;
}

/** An output that has won. */
export interface JobOutput extends GeneratedOutput {
  fileId: string;
}

/** Why a job failed, or was never accepted. */
export interface JobFailure {
  reason: Reason;
  /** For people, in our words. */
  message: string;
  param: string | undefined;
}

/** Why a job fails, in the words that the reason has everywhere. */
export function failureFor(reason: Reason): JobFailure {
  return { reason, message: errorRow(reason).message, param: undefined };
}

/** A step in a job's life. */
interface JobEvent {
  /** Ms since the epoch. */
  at: number;
  /**
   * The state that it entered; "resumed" and "asked_again" of a later claim; "unanswered" while a lost worker may still bring its outputs;
   * "handed_back", "waiting".
   */
  name: string;
  detail: string;
}

/** Where a job's end is told. */
export interface JobWebhook {
  /** The caller's. */
  url: string;
  /** What our own URLs begin with, as the submission came in; empty: unknown. */
  baseUrl: string;
  /** The end is written down among the webhooks, which deliver it. */
  isAnnounced: boolean;
}

/** A job: idempotency record, outbox row and work item in one document. Times are ms since the epoch. */
export interface Job {
  /** "job_" and 24 characters; the id of its hold too. */
  jobId: string;
  accountId: string;
  keyId: string;
  slot: JobSlot | undefined;
  /** Of the body that made it. */
  fingerprint: string;
  spec: JobSpec;
  /** The failed job that it repeats. */
  retryOf: string | undefined;
  createdAt: number;
  state: JobState;
  /** Undefined until the references are in the account's storage and pinned. */
  pinned: readonly PinnedReference[] | undefined;
  /** False once the pins were let go of. */
  pinsHeld: boolean;
  /** Attempts begun: claims, without those that were handed back or took up an upstream's task again. */
  attempts: number;
  /** Rises with every claim; a worker that brings an older one no longer has the job. */
  fence: number;
  lease: JobLease | undefined;
  /** Which of the spec's upstreams. */
  upstreamIndex: number;
  /** That upstream's id of the task. */
  resumeId: string | undefined;
  /** That upstream was sent a request that begins the generation, and has not said that nothing came of it. */
  sent: boolean;
  /** Undefined: no upstream has turned the job away, or one has taken it since. */
  wait: JobWait | undefined;
  /** 0 to 99 while it runs. */
  progress: number;
  outputs: readonly JobOutput[];
  failure: JobFailure | undefined;
  /** Credits; set when terminal. */
  charged: bigint | undefined;
  /** How often a wake-up was published. */
  publications: number;
  /** When the sweeper looks at it next; undefined: never. Of a `reserving` job: when its request's lease is over. */
  dueAt: number | undefined;
  /** Queued: when it expires. Running: when its time is over. */
  deadline: number;
  startedAt: number | undefined;
  /** When a worker last claimed it. */
  claimedAt: number | undefined;
  completedAt: number | undefined;
  /** When its record and outputs go; undefined: not terminal, or kept for ever. */
  expiresAt: number | undefined;
  /** Undefined: no address is told of its end. */
  webhook: JobWebhook | undefined;
  /** The newest 100. */
  events: readonly JobEvent[];
}

/** A job without what it is to do, which may be long. */
export type JobHead = Omit<Job, "spec">;

/** A job's state as callers see it. */
export type ShownState = "queued" | "running" | "completed" | "failed";

const shown: Readonly<Record<JobState, ShownState | undefined>> = {
  reserving: "queued",
  queued: "queued",
  running: "running",
  settling: "running",
  failing: "running",
  completed: "completed",
  failed: "failed",
  rejected: undefined,
  deleted: undefined,
};

/** What callers see of a state; undefined: nothing. */
export function shownState(state: JobState): ShownState | undefined {
  return shown[state];
}

/** Do callers and operators see it? */
export function isShown({ state }: Pick<Job, "state">): boolean {
  return shown[state] !== undefined;
}

/** The states that look like `state`. */
export function statesShownAs(state: ShownState): JobState[] {
  return (Object.keys(shown) as JobState[]).filter((inside) => shown[inside] === state);
}

/** No change follows, as callers see it. */
export function isTerminal(job: Pick<Job, "state">): boolean {
  return job.state === "completed" || job.state === "failed";
}

/** Its end is to be told, and is not written down among the webhooks. */
export function isUnannounced(job: Pick<Job, "state" | "webhook">): boolean {
  return isTerminal(job) && job.webhook?.isAnnounced === false;
}

/** Did its caller cancel it? */
export function wasCancelled({ failure }: Pick<Job, "failure">): boolean {
  return failure?.reason === ErrorReason.JOB_CANCELLED;
}

/**
 * Credits that the end of a failing or failed job charges: the price of a cancelled one that its upstream may have begun, where the
 * catalog says that this upstream charges for that; else none.
 */
export function owedOf(job: Job): bigint {
  if (!wasCancelled(job) || !(job.sent || job.resumeId !== undefined)) return 0n;
  return upstreamOf(job).chargesWhenCancelled ? job.spec.price : 0n;
}

/**
 * Credits that a job that has won is charged: its price, or of pictures the price of those that were made, where upstream refused the
 * others. Exact, for a job's price is that of one picture times their number.
 */
export function earnedOf({
  spec: { price, request },
  outputs,
}: Pick<Job, "spec" | "outputs">): bigint {
  if (request.kind !== "image") return price;
  return (price / BigInt(request.count)) * BigInt(outputs.length);
}

/** The upstream that has the job, or will. */
export function upstreamOf({ spec, upstreamIndex }: Pick<Job, "spec" | "upstreamIndex">): Upstream {
  const upstream = spec.upstreams[upstreamIndex];
  if (!upstream) throw new TypeError("a job without an upstream");
  return upstream;
}

/** Did a claim give the job to this worker? */
export function isOf(job: Job, owner: string): boolean {
  return job.state === "running" && job.lease?.owner === owner;
}

/** When its worker's lease is over. */
export function leaseEnd({ lease }: Pick<Job, "lease">): number {
  return lease?.until ?? 0;
}

/** Has a worker a lease on it that is not over? */
export function isHeld(job: Pick<Job, "state" | "lease">, now: number): boolean {
  return job.state === "running" && leaseEnd(job) > now;
}

/** A queued job that no worker may claim yet: its upstream would not take it. */
export function isParked({ state, wait }: Pick<Job, "state" | "wait">): boolean {
  return state === "queued" && wait?.until !== undefined;
}

/** What a caller's submission writes down first. */
export interface NewJob {
  jobId: string;
  accountId: string;
  keyId: string;
  slot: JobSlot | undefined;
  fingerprint: string;
  spec: JobSpec;
  retryOf: string | undefined;
  webhook?: JobWebhook | undefined;
}

/** A submission, written down before anything is held. */
export function newJob(job: NewJob, now: number): Job {
  return {
    ...job,
    createdAt: now,
    state: "reserving",
    pinned: job.spec.references.length === 0 ? [] : undefined,
    pinsHeld: job.spec.references.length > 0,
    attempts: 0,
    fence: 0,
    lease: undefined,
    upstreamIndex: 0,
    resumeId: undefined,
    sent: false,
    wait: undefined,
    progress: 0,
    outputs: [],
    failure: undefined,
    charged: undefined,
    publications: 0,
    dueAt: now + reservingLeaseMs,
    deadline: now + maxQueuedMs,
    startedAt: undefined,
    claimedAt: undefined,
    completedAt: undefined,
    expiresAt: undefined,
    webhook: job.webhook,
    events: [{ at: now, name: "reserving", detail: "" }],
  };
}

/** The job with a step more in its history. */
export function noted(job: Job, at: number, detail = "", name: string = job.state): Job {
  return { ...job, events: [...job.events, { at, name, detail }].slice(-maxEvents) };
}

/** For operators. */
export const refusalWords: Readonly<Record<Refusal, string>> = {
  too_many_requests: "the upstream answered 429",
  unavailable: "the upstream was not available (5xx)",
  unreachable: "the upstream could not be reached",
  account_empty: "our account at the upstream is empty",
  denied: "the upstream denied what is configured",
};

/** A day of tries would push all else out of a job's history: the newest stands for them. */
export function withoutLastTry(events: readonly JobEvent[]): readonly JobEvent[] {
  const before = events.at(-1)?.name === "running" ? events.slice(0, -1) : events;
  return before.at(-1)?.name === "waiting" ? before.slice(0, -1) : before;
}

/** Where in a spec stands what {@link withoutText} leaves out, which may be long. */
export const textPaths: readonly string[] = [
  ...["call", "references", "request.prompt", "request.negativePrompt"],
  ...["request.title", "request.description", "request.lyrics"],
];

/** What the caller wrote is kept no longer than it is of use, and how the model is called, which may be a whole workflow, neither. */
export function withoutText({ call: _, ...spec }: JobSpec): JobSpec {
  return { ...spec, request: requestWithoutText(spec.request), references: [] };
}

/** Is what the caller wrote still there? It is never empty. */
export function hasText({ request }: JobSpec): boolean {
  return (request.kind === "music" ? request.title : request.prompt) !== "";
}

/** Bytes of what a repeat of the job needs, as it is stored: what the caller wrote, and how the model is called. */
export function repeatBytesOf({ request, call }: JobSpec): number {
  const texts =
    request.kind === "music"
      ? [request.title, request.description, request.lyrics]
      : [request.prompt];
  if (request.negativePrompt !== undefined) texts.push(request.negativePrompt);
  const called = call ? [call.input, call.workflow] : [];
  return Buffer.byteLength(JSON.stringify([...texts, ...called]));
}

function requestWithoutText(request: GenerationRequest): GenerationRequest {
  switch (request.kind) {
    case "image":
    case "video":
      return { ...request, prompt: "", negativePrompt: undefined };
    case "music":
      return {
        ...request,
        ...{ title: "", description: undefined, lyrics: undefined, negativePrompt: undefined },
      };
  }
}
