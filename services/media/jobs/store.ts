import { clockSlackMs, type PutOffWork } from "#kit/time/lease-time.ts";
import {
  leaseMs,
  lostAnswerMs,
  maxRepublishMs,
  maxSetAsideMs,
  maxWaitMs,
  rejectedKeptMs,
  reservingLeaseMs,
  stepDueMs,
  sweepRetryMs,
  unpublishedMs,
} from "../limits.ts";
import type { Standing } from "./census.ts";
import type { Job, JobHead, JobSlot, JobState, MediaKind } from "./job.ts";
import type { JobCommand } from "./lifecycle.ts";
import type { RenewCommand } from "./renewals.ts";
import type { WaitingLine } from "./waiting-jobs.ts";

/** A worker's search for work. */
export interface WorkQuery {
  kind: MediaKind;
  now: number;
  /** A lease that ends then or before, or a time to live, is over (see `kit/time/lease-time.ts`); default `now`. */
  leasesOverAt?: number;
  /** Upstreams (names) that this worker has no place at. */
  fullUpstreams: readonly string[];
  /** Accounts (ids), by upstream, that have their share of this worker's places there; default none. */
  fullAccounts?: ReadonlyMap<string, readonly string[]>;
  /** Most `running` jobs of a model, everywhere; models that are not named have no bound. */
  modelLimits: ReadonlyMap<string, number>;
}

/** A search whose find is claimed. */
export interface ClaimQuery extends WorkQuery {
  /** The worker that claims. */
  owner: string;
}

/** A sweeper's search. */
export interface DueQuery {
  states: readonly JobState[];
  now: number;
  until: number;
  limit: number;
}

/** Which failed or deleted jobs are too many. */
export interface SurplusQuery {
  state: "failed" | "deleted";
  accountId: string;
  kind: MediaKind;
  newest: number;
  limit: number;
}

/** A job's place in the order of their making. */
export interface JobPlace {
  createdAt: number;
  jobId: string;
}

/** Which jobs; newest first. */
export interface JobsQuery {
  /** Of a key, or of an account; "all" of all. */
  of: { keyId: string } | { accountId: string } | "all";
  /** Only these; never empty. */
  states: readonly JobState[];
  kind: MediaKind | undefined;
  /** Public id; default all. */
  model?: string | undefined;
  /** Only those after this one in the order: older ones. */
  after: JobPlace | undefined;
  /** Only those before this one, and of these the nearest to it; not together with `after`. */
  before?: JobPlace | undefined;
  limit: number;
}

/**
 * Jobs. Each method is one transition of one document, atomic and durable when it resolves; reads see every write that
 * has resolved, made by any process. All reject with SERVICE_UNAVAILABLE where the store is away: whether the
 * transition was made is then unknown, and making it again is safe, for every one of them is made at most once.
 */
export interface JobStore extends PutOffWork {
  /** Makes what is missing. */
  open(): Promise<void>;
  /**
   * Writes a new job down, or answers the one that has its idempotency slot (or its id). `signal`: its caller has left; where others ask
   * for the same slot before it, it may be rejected with the signal's reason, and nothing is written then.
   */
  insert(job: Job, signal?: AbortSignal): Promise<Job | undefined>;
  /**
   * Applies a command (`step` in lifecycle.ts) to what the job is at that moment. Answers the job as it then is, or
   * undefined where its state does not allow the command, or there is no such job: nothing was changed.
   */
  apply(jobId: string, command: JobCommand): Promise<Job | undefined>;
  /** The same for what happens to a job again and again; what the job is to do is not read for it. */
  renew(jobId: string, command: RenewCommand): Promise<JobHead | undefined>;
  /**
   * Claims the fairest due job of a kind: of the account with the fewest `running` jobs of the kind (a lost job that is
   * claimed itself not counted), among these of the one that a worker came to longest ago, and of it the job that has
   * waited longest; found by indexes, however many wait. Of a model with a limit never more jobs are `running` than that,
   * with any number of claimers; a lost job has its place already. The answer may be `failing`, or `running` without a
   * worker (`claim` in lifecycle.ts). Undefined: nothing is due.
   */
  claim(query: ClaimQuery): Promise<Job | undefined>;
  /** The job that {@link claim} would take, which it leaves as it is. */
  peek(query: WorkQuery): Promise<Job | undefined>;
  /**
   * Does a job of one of these kinds wait, or is one lost, so that it is worth a claim? That may find none all the same:
   * it minds fairness and limits as well. Two looks at indexes.
   */
  isAnyClaimable(kinds: readonly MediaKind[], leasesOverAt: number): Promise<boolean>;
  /**
   * Jobs in these states with `dueAt` passed, by index, at most `limit` of each state, longest due first; their `dueAt` is
   * now `until`, so that no other sweeper takes them before. Some are read in each turn of the event loop, as those of a list are.
   */
  takeDue(query: DueQuery): Promise<Job[]>;
  /** Is there a job in one of these states with `dueAt` passed? One look at an index; without states, none at all. */
  isAnyDue(states: readonly JobState[], now: number): Promise<boolean>;
  /** Removes a `rejected` job, or a terminal or deleted one whose `expiresAt` has passed. False where it is none of these. */
  forget(jobId: string, now: number): Promise<boolean>;
  find(jobId: string): Promise<Job | undefined>;
  /**
   * The same without what its caller wrote at length (`withoutText` in job.ts), which is not read: the longest is 390 KB, and decoding it keeps the
   * event loop for some ms.
   */
  findWithoutText(jobId: string): Promise<Job | undefined>;
  /** The job that has an idempotency slot. */
  findBySlot(slot: JobSlot): Promise<Job | undefined>;
  /** The job that has an output of this file id, by index; as {@link findWithoutText}. */
  findByOutput(fileId: string): Promise<Job | undefined>;
  /** Newest first; as {@link findWithoutText}. Some jobs are read in each turn of the event loop: what is asked for at the same time is not held up. */
  list(query: JobsQuery): Promise<Job[]>;
  /** Ids of up to `limit` jobs of an account, kind and state beyond its `newest`, by index; the newest of these first. */
  surplus(query: SurplusQuery): Promise<string[]>;
  /** Of these jobs those that are `running`, with the fence of the worker that has each; one look by their ids. */
  runningFences(jobIds: readonly string[]): Promise<Map<string, number>>;
  /** The marks (`markOf`) of those of these jobs that are there; one look by their ids, which reads nothing that may be long. */
  marks(jobIds: readonly string[]): Promise<Map<string, string>>;
  /** Up to `limit` jobs that have ended with a webhook that is not announced, by index; in no order. */
  unannounced(limit: number): Promise<Job[]>;
  /**
   * Jobs of a kind that wait for a worker, by index alone and a thousand of each lane, and what runs; undefined where they are of
   * too many accounts or lanes.
   */
  line(kind: MediaKind): Promise<WaitingLine | undefined>;
  /** How many jobs that something is still to be done about are in which state; a state without one is left out. */
  census(): Promise<Standing[]>;
}

/** Longest that a running job's lease lasts, in ms: a job that is set aside, or whose lost worker is waited for, keeps it so long. */
const longestLeaseMs = Math.max(leaseMs, maxSetAsideMs, lostAnswerMs);
const stepMs = Math.max(stepDueMs, sweepRetryMs);

/** Longest until a job of a state that is to change is looked at, in ms. */
const longestDueMs: readonly (readonly [JobState, number])[] = [
  ["reserving", Math.max(reservingLeaseMs, sweepRetryMs)],
  ["queued", Math.max(maxRepublishMs, maxWaitMs)],
  ["running", longestLeaseMs + unpublishedMs],
  ["settling", stepMs],
  ["failing", stepMs],
  ["rejected", rejectedKeptMs],
];

/** Of each state, the time after which no `dueAt` lies that a right clock wrote. */
export function latestDue(now: number): (readonly [JobState, number])[] {
  return longestDueMs.map(([state, ms]) => [state, now + ms + clockSlackMs]);
}

/** The time after which no lease ends that a right clock wrote. */
export function latestLease(now: number): number {
  return now + longestLeaseMs + clockSlackMs;
}
