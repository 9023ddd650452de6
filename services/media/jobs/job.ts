import type { Reason } from "#kit/errors.ts";
import { type Upstream, UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { GeneratedOutput, GenerationRequest, Refusal } from "../generate/port.ts";
import type { PinnedReference, ReferenceInput } from "../references/port.ts";

/** What a job makes. */
export type MediaKind = GenerationRequest["kind"];

/** All kinds. */
export const mediaKinds: readonly MediaKind[] = ["image", "video", "music"];

/**
 * A job's states, inside: `reserving → queued → running → settling → completed`, `reserving → rejected`,
 * `queued | running → failing → failed`. Never backwards.
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
  /** Never accepted; its idempotency key is free again. Shown to nobody. */
  | "rejected"
  /** It has failed; its hold is being released. */
  | "failing"
  /** Released. */
  | "failed";

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
  /** At least one, in the order of trying. */
  upstreams: readonly Upstream[];
  /** Credits; held at acceptance, charged at completion. */
  price: bigint;
  /** The trace of its submission (W3C), which whoever works on it later goes on with. */
  traceparent?: string;
}

/** Where an idempotency key counts: one job at most has it. */
export interface JobSlot {
  /** Key id and route. */
  scope: string;
  /** The caller's. */
  key: string;
}

/** Who works on a running job. */
export interface JobLease {
  owner: string;
  /** Ms since the epoch; from then on anybody may claim the job. */
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

/** A step in a job's life. */
export interface JobEvent {
  /** Ms since the epoch. */
  at: number;
  /** The state that it entered, or "resumed", "handed_back", "waiting". */
  name: string;
  detail: string;
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
  /** Rises with every claim; who brings an older one is no longer the job's worker. */
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
  /** When the sweeper looks at it next; undefined: never. */
  dueAt: number | undefined;
  /** Queued: when it expires. Running: when its time is over. */
  deadline: number;
  startedAt: number | undefined;
  /** When a worker last claimed it. */
  claimedAt: number | undefined;
  completedAt: number | undefined;
  /** When its record and outputs go; undefined: not terminal, or kept for ever. */
  expiresAt: number | undefined;
  /** The newest 100. */
  events: readonly JobEvent[];
}

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
};

/** What callers see of a state; undefined: nothing. */
export function shownState(state: JobState): ShownState | undefined {
  return shown[state];
}

/** The states that look like `state`. */
export function statesShownAs(state: ShownState): JobState[] {
  return (Object.keys(shown) as JobState[]).filter((inside) => shown[inside] === state);
}

/** No change follows, as callers see it. */
export function isTerminal(job: Pick<Job, "state">): boolean {
  return job.state === "completed" || job.state === "failed";
}

/** The upstream that has the job, or will. */
export function upstreamOf({ spec, upstreamIndex }: Pick<Job, "spec" | "upstreamIndex">): Upstream {
  const upstream = spec.upstreams[upstreamIndex];
  if (!upstream) throw new TypeError("a job without an upstream");
  return upstream;
}

/** A queued job that no worker may claim yet: its upstream would not take it. */
export function isParked({ state, wait }: Pick<Job, "state" | "wait">): boolean {
  return state === "queued" && wait?.until !== undefined;
}

/** Here a request may be repeated: the one takes our idempotency key, the other costs nothing. */
const repeatable: readonly UpstreamProtocol[] = [
  UpstreamProtocol.GENMESH,
  UpstreamProtocol.BUILTIN,
];

/**
 * May a generation be asked for (again) at the job's upstream without being paid for twice? Not where the upstream may
 * have begun one, cannot be asked for it, and takes no idempotency key.
 */
export function mayBegin(job: Pick<Job, "spec" | "upstreamIndex" | "sent" | "resumeId">): boolean {
  if (!job.sent || job.resumeId !== undefined) return true;
  return repeatable.includes(upstreamOf(job).protocol);
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
}
