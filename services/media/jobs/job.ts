// Says what a job is: its fields, its states, and what callers see of it. `lifecycle.ts` says how it changes.

import type { FailedTry } from "#common/agreements/hold-client.ts";
import { ErrorReason, errorRow, type Reason } from "#kit/base/errors.ts";
import type { ModelCall, Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { GeneratedOutput, GenerationRequest, Refusal } from "../../upstreams/media/port.ts";
import { maxEvents, maxQueuedMs, reservingLeaseMs } from "../limits.ts";
import type { PinnedReference, ReferenceInput } from "../references/port.ts";

/** The output of a job. */
export type MediaKind = GenerationRequest["kind"];

/** All kinds. */
export const mediaKinds: readonly MediaKind[] = ["image", "video", "music"];

/**
 * The internal states of a job: `reserving → queued → running → settling → completed`, `reserving → rejected`, `queued | running →
 * failing → failed`, `completed | failed → deleted`. A job never goes back to an earlier state.
 */
export type JobState =
  /** Written down. Its references are being imported and its price is being held. */
  | "reserving"
  /** Accepted: its price is held. */
  | "queued"
  /** A worker has begun it. */
  | "running"
  /** Its outputs are final and in our store. The price is being charged. */
  | "settling"
  /** Charged. */
  | "completed"
  /** Never accepted. Its idempotency key is free again. Never shown. */
  | "rejected"
  /** It has failed. Its hold is being released. */
  | "failing"
  /** Its hold has ended: released, except for {@link owedOf}. */
  | "failed"
  /** Its caller deleted it. Never shown. The rest of it shows that its idempotency key was used. */
  | "deleted";

/** A reference in the caller's form, without bytes: those of a data URI are not written down. */
export type StoredReference = ReferenceInput | { kind: "inline"; param: string };

/** The work of a job. It never changes, except that the caller's texts are removed when they are of no further use. */
export interface JobSpec {
  kind: MediaKind;
  /** Public id of the model. */
  model: string;
  modelName: string;
  /** "t2v" or "i2v"; "instrumental" or "lyrics"; empty for images. */
  mode: string;
  /** The version of the catalog under which the job was accepted. It applies to its end. */
  catalogVersion: string;
  request: GenerationRequest;
  /** Present until they are in the account's storage. */
  references: readonly StoredReference[];
  /** The upstream's name for the model. */
  upstreamModel: string;
  /** The model's call at the upstream for this request. Absent where no template calls its upstreams. */
  call?: ModelCall;
  /** At least one, in the order in which they are tried. */
  upstreams: readonly Upstream[];
  /** Credits. Held at acceptance, charged at completion. */
  price: bigint;
  /** The caller's notes on it, name and value. They are shown with the job until it is deleted. */
  metadata?: readonly (readonly [string, string])[] | undefined;
  /** The trace of its submission (W3C). Later work on the job continues it. */
  traceparent?: string;
  /** Id of the caller's HTTP request that submitted it. */
  requestId?: string;
}

/** The scope of an idempotency key. At most one job has a slot. */
export interface JobSlot {
  /** Key id and route. */
  scope: string;
  /** The caller's key. */
  key: string;
}

/** The worker that has a running job. */
interface JobLease {
  /** Empty: none, although a worker that was lost may still bring its outputs. */
  owner: string;
  /** Milliseconds since the epoch. From then on any worker may claim the job. */
  until: number;
  /** Was this claim counted as an attempt? */
  counted: boolean;
}

/** How often upstreams refused the job, and when it is offered again. */
export interface JobWait {
  /** The kind of the last refusal. */
  refusal: Refusal;
  times: number;
  /** Milliseconds since the epoch. No worker claims the job before. Undefined: that time has come. */
  until: number | undefined;
  /** See `emptySinceOf` in lifecycle.ts. It is the value at the last refusal. */
  emptySince?: number;
}

/** A final output. */
export interface JobOutput extends GeneratedOutput {
  fileId: string;
}

/** The reason why a job failed, or was never accepted. */
export interface JobFailure {
  reason: Reason;
  /** A text for people, in our words. */
  message: string;
  param: string | undefined;
}

/** The failure of a job, in the words that the reason has everywhere. */
export function failureFor(reason: Reason): JobFailure {
  return { reason, message: errorRow(reason).message, param: undefined };
}

/** A step in a job's life. */
interface JobEvent {
  /** Milliseconds since the epoch. */
  at: number;
  /**
   * The state that it entered, or another step. "resumed" and "asked_again" are later claims. "unanswered" means that a lost worker may
   * still bring its outputs. The others are "handed_back" and "waiting".
   */
  name: string;
  detail: string;
}

/** The address that is informed of a job's end. */
export interface JobWebhook {
  /** The caller's. */
  url: string;
  /** The beginning of our own URLs, as in the submission. Empty: unknown. */
  baseUrl: string;
  /** Is the end written down among the webhooks, which deliver it? */
  isAnnounced: boolean;
}

/** A job. One document is its idempotency record, its outbox row and its work item. Times are ms since the epoch. */
export interface Job {
  /** "job_" and 24 characters. It is the id of its hold too. */
  jobId: string;
  accountId: string;
  keyId: string;
  slot: JobSlot | undefined;
  /** The fingerprint of the body that made it. */
  fingerprint: string;
  spec: JobSpec;
  /** The failed job that this one repeats. */
  retryOf: string | undefined;
  createdAt: number;
  state: JobState;
  /** Undefined until the references are in the account's storage and pinned. */
  pinned: readonly PinnedReference[] | undefined;
  /** False once the references were unpinned. */
  pinsHeld: boolean;
  /** Attempts begun: claims, without those that were handed back or that resumed an upstream's task. */
  attempts: number;
  /** Rises with every claim. A worker with an older one no longer has the job. */
  fence: number;
  lease: JobLease | undefined;
  /** Index of the present upstream in the spec. */
  upstreamIndex: number;
  /** The present upstream's id of the task. */
  resumeId: string | undefined;
  /** Was a request that begins the generation sent to that upstream, without an answer that it led to nothing? */
  sent: boolean;
  /** Undefined: no upstream has refused the job, or one has taken it since. */
  wait: JobWait | undefined;
  /** Tries at its upstreams that failed, the newest. Undefined: none did, or an earlier release noted none. */
  failedTries?: readonly FailedTry[] | undefined;
  /** 0 to 99 while it runs. */
  progress: number;
  outputs: readonly JobOutput[];
  failure: JobFailure | undefined;
  /** Credits. Set when the job is terminal. */
  charged: bigint | undefined;
  /** How often a wake-up was published. */
  publications: number;
  /** When the sweeper looks at it next. Undefined: never. For a `reserving` job: the end of its request's lease. */
  dueAt: number | undefined;
  /** Queued: when it expires. Running: when its time is over. */
  deadline: number;
  startedAt: number | undefined;
  /** When a worker last claimed it. */
  claimedAt: number | undefined;
  completedAt: number | undefined;
  /** When its record and outputs are removed. Undefined: it is not terminal, or is kept for ever. */
  expiresAt: number | undefined;
  /** Undefined: no address is informed of its end. */
  webhook: JobWebhook | undefined;
  /** The newest 100. */
  events: readonly JobEvent[];
}

/** A job without its spec, which may be long. */
export type JobHead = Omit<Job, "spec">;

/** A job's state for callers. */
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

/** The state that callers see. Undefined: none. */
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

/** From the callers' view, no further change follows. */
export function isTerminal(job: Pick<Job, "state">): boolean {
  return job.state === "completed" || job.state === "failed";
}

/** Has it an end to announce that is not written down among the webhooks? */
export function isUnannounced(job: Pick<Job, "state" | "webhook">): boolean {
  return isTerminal(job) && job.webhook?.isAnnounced === false;
}

/** Did its caller cancel it? */
export function wasCancelled({ failure }: Pick<Job, "failure">): boolean {
  return failure?.reason === ErrorReason.JOB_CANCELLED;
}

/**
 * Credits that the end of a failing or failed job charges. That is the price of a cancelled job that its upstream may have begun, where
 * the catalog says that this upstream charges for that. Otherwise none.
 */
export function owedOf(job: Job): bigint {
  if (!wasCancelled(job) || !(job.sent || job.resumeId !== undefined)) return 0n;
  return upstreamOf(job).chargesWhenCancelled ? job.spec.price : 0n;
}

/**
 * Credits that a job with final outputs is charged: its price. Where the upstream refused some images, it is the price of those that
 * were made. It is exact, because a job's price is that of one image times their number.
 */
export function earnedOf({
  spec: { price, request },
  outputs,
}: Pick<Job, "spec" | "outputs">): bigint {
  if (request.kind !== "image") return price;
  return (price / BigInt(request.count)) * BigInt(outputs.length);
}

/** The upstream that has the job, or will have it. */
export function upstreamOf({ spec, upstreamIndex }: Pick<Job, "spec" | "upstreamIndex">): Upstream {
  const upstream = spec.upstreams[upstreamIndex];
  if (!upstream) throw new TypeError("a job without an upstream");
  return upstream;
}

/** Did a claim give the job to this worker? */
export function isOf(job: Job, owner: string): boolean {
  return job.state === "running" && job.lease?.owner === owner;
}

/** The end of its worker's lease. */
export function leaseEnd({ lease }: Pick<Job, "lease">): number {
  return lease?.until ?? 0;
}

/** Has a worker a lease on it that is not over? */
export function isHeld(job: Pick<Job, "state" | "lease">, now: number): boolean {
  return job.state === "running" && leaseEnd(job) > now;
}

/** A queued job that no worker may claim yet, because its upstream refused it. */
export function isParked({ state, wait }: Pick<Job, "state" | "wait">): boolean {
  return state === "queued" && wait?.until !== undefined;
}

/** The first values of a caller's submission. */
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

/** A submission, written down before any money is held. */
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

/** The job with one more step in its history. */
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

/** A day of tries would push everything else out of a job's history, so only the newest is kept. */
export function withoutLastTry(events: readonly JobEvent[]): readonly JobEvent[] {
  const before = withoutClaim(events);
  return before.at(-1)?.name === "waiting" ? before.slice(0, -1) : before;
}

/** The history before the last claim. */
export function withoutClaim(events: readonly JobEvent[]): readonly JobEvent[] {
  return events.at(-1)?.name === "running" ? events.slice(0, -1) : events;
}

/** The places in a spec of the parts that {@link withoutText} leaves out. They may be long. */
export const textPaths: readonly string[] = [
  ...["call", "references", "request.prompt", "request.negativePrompt"],
  ...["request.title", "request.description", "request.lyrics"],
];

/** Removes the caller's texts once they are of no further use. Removes the model's call as well, which may be a whole workflow. */
export function withoutText({ call: _, ...spec }: JobSpec): JobSpec {
  return { ...spec, request: requestWithoutText(spec.request), references: [] };
}

/** Are the caller's texts still there? They are never empty. */
export function hasText({ request }: JobSpec): boolean {
  return (request.kind === "music" ? request.title : request.prompt) !== "";
}

/** Stored bytes of the parts that a repeat of the job needs: the caller's texts, and the model's call. */
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
