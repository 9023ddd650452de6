// Declares what the store of jobs must promise, in SQLite and in MongoDB, and the queries that it answers.

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
  /** A lease, or a time to live, that ends then or before is over (see `kit/time/lease-time.ts`). Default: `now`. */
  leasesOverAt?: number;
  /** Upstreams (names) where this worker has no place. */
  fullUpstreams: readonly string[];
  /** Accounts (ids), by upstream, that have their full share of this worker's places there. Default: none. */
  fullAccounts?: ReadonlyMap<string, readonly string[]>;
  /** Most `running` jobs of a model, over all workers. A model that is not named has no bound. */
  modelLimits: ReadonlyMap<string, number>;
}

/** A search whose result is claimed. */
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

/** A search for failed or deleted jobs above an account's allowance. */
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

/** A query for jobs, newest first. */
export interface JobsQuery {
  /** Jobs of a key, of an account, or all. */
  of: { keyId: string } | { accountId: string } | "all";
  /** Only jobs in these states. Never empty. */
  states: readonly JobState[];
  kind: MediaKind | undefined;
  /** Public id. Default: all. */
  model?: string | undefined;
  /** Only jobs after this one in the order, which are older. */
  after: JobPlace | undefined;
  /** Only jobs before this one, and of these the nearest to it. Not together with `after`. */
  before?: JobPlace | undefined;
  /** Only jobs made at this time or later, in ms since the epoch. Default: all. */
  from?: number | undefined;
  /** Only jobs made before this time. Default: all. */
  until?: number | undefined;
  limit: number;
}

/** The places between which a query's jobs are: its range of time, narrowed by its cursor. */
export function boundsOf({ after, before, from, until }: JobsQuery) {
  const inOrder = (...places: (JobPlace | undefined)[]) =>
    places.filter((place) => place !== undefined).sort(comparePlaces);
  // No id is empty, so these places are before all jobs of their time.
  const first = from === undefined ? undefined : { createdAt: from, jobId: "" };
  const end = until === undefined ? undefined : { createdAt: until, jobId: "" };
  return { above: inOrder(first, before).at(-1), below: inOrder(end, after)[0] };
}

function comparePlaces(a: JobPlace, b: JobPlace): number {
  if (a.createdAt !== b.createdAt) return a.createdAt - b.createdAt;
  return a.jobId < b.jobId ? -1 : 1;
}

/**
 * Jobs. Each method is one transition of one document, atomic and durable when it resolves. Reads see every write that has resolved,
 * made by any process. All reject with SERVICE_UNAVAILABLE where the store is away. Then the transition may or may not have been made.
 * Making it again is safe, because each is made at most once.
 */
export interface JobStore extends PutOffWork {
  /** Makes missing collections, tables and indexes. */
  open(): Promise<void>;
  /**
   * Writes a new job down, or answers the one that has its idempotency slot (or its id). `signal` aborts when its caller has left.
   * Where other requests for the same slot wait before it, it may then be rejected with the signal's reason, and nothing is written.
   */
  insert(job: Job, signal?: AbortSignal): Promise<Job | undefined>;
  /**
   * Applies a command (`step` in lifecycle.ts) to the job's present state. Answers the job after it. Undefined where its state does not
   * allow the command, or where there is no such job. Then nothing was changed.
   */
  apply(jobId: string, command: JobCommand): Promise<Job | undefined>;
  /** The same for commands that a job gets again and again. The job's spec is not read for them. */
  renew(jobId: string, command: RenewCommand): Promise<JobHead | undefined>;
  /**
   * Claims the fairest due job of a kind.
   * 1. It is of the account with the fewest `running` jobs of the kind. A lost job that is claimed does not count itself.
   * 2. Among these, it is of the account that a worker served longest ago.
   * 3. Of that account, it is the job that has waited longest.
   *
   * It is found by indexes, however many wait. A model with a limit never has more `running` jobs than that, with any number of
   * claimers. A lost job has its place already. The answer may be `failing`, or `running` without a worker (`claim` in lifecycle.ts).
   * Undefined: no job is due.
   */
  claim(query: ClaimQuery): Promise<Job | undefined>;
  /** The job that {@link claim} would take, without a change to it. */
  peek(query: WorkQuery): Promise<Job | undefined>;
  /**
   * Does a job of one of these kinds wait, or is one lost, so that a claim makes sense? The claim may still find none, because it
   * follows fairness and limits as well. This takes two looks at indexes.
   */
  isAnyClaimable(kinds: readonly MediaKind[], leasesOverAt: number): Promise<boolean>;
  /**
   * Jobs in these states with `dueAt` passed, by index, at most `limit` of each state, longest due first. Their `dueAt` is now `until`,
   * so that no other sweeper takes them before. Some are read in each turn of the event loop, like those of a list.
   */
  takeDue(query: DueQuery): Promise<Job[]>;
  /** Is there a job in one of these states with `dueAt` passed? This takes one look at an index, and none without states. */
  isAnyDue(states: readonly JobState[], now: number): Promise<boolean>;
  /**
   * Removes a `rejected` job, or a terminal or deleted one whose `expiresAt` has passed. False where the job is in none of these
   * states.
   */
  forget(jobId: string, now: number): Promise<boolean>;
  find(jobId: string): Promise<Job | undefined>;
  /**
   * The same job without the caller's long texts (`withoutText` in job.ts), which are not read. The longest has 390 KB, and decoding it
   * blocks the event loop for some ms.
   */
  findWithoutText(jobId: string): Promise<Job | undefined>;
  /** The job that has an idempotency slot. */
  findBySlot(slot: JobSlot): Promise<Job | undefined>;
  /** The job with an output of this file id, by index. It is read like {@link findWithoutText}. */
  findByOutput(fileId: string): Promise<Job | undefined>;
  /**
   * Newest first, read like {@link findWithoutText}. Some jobs are read in each turn of the event loop, so that other requests are not
   * delayed.
   */
  list(query: JobsQuery): Promise<Job[]>;
  /** Ids of up to `limit` jobs of an account, kind and state beyond its `newest`, by index. The newest of these come first. */
  surplus(query: SurplusQuery): Promise<string[]>;
  /** Those of these jobs that are `running`, with the fence of each one's worker. This takes one look by their ids. */
  runningFences(jobIds: readonly string[]): Promise<Map<string, number>>;
  /** The marks (`markOf`) of those of these jobs that exist. This takes one look by their ids, and reads no long part. */
  marks(jobIds: readonly string[]): Promise<Map<string, string>>;
  /** Up to `limit` jobs that have ended with a webhook that is not announced, by index; in no order. */
  unannounced(limit: number): Promise<Job[]>;
  /**
   * Jobs of a kind that wait for a worker, at most a thousand of each lane, and those that run. Only indexes are read. Undefined where
   * they have too many accounts or lanes.
   */
  line(kind: MediaKind): Promise<WaitingLine | undefined>;
  /** The number of jobs in each state that needs further work. A state without jobs is left out. */
  census(): Promise<Standing[]>;
}

/** Longest lease of a running job, in ms. A job that is put off, or whose lost worker is waited for, keeps it for this long. */
const longestLeaseMs = Math.max(leaseMs, maxSetAsideMs, lostAnswerMs);
const stepMs = Math.max(stepDueMs, sweepRetryMs);

/** Longest time until a job in a changing state is looked at, in ms. */
const longestDueMs: readonly (readonly [JobState, number])[] = [
  ["reserving", Math.max(reservingLeaseMs, sweepRetryMs)],
  ["queued", Math.max(maxRepublishMs, maxWaitMs)],
  ["running", longestLeaseMs + unpublishedMs],
  ["settling", stepMs],
  ["failing", stepMs],
  ["rejected", rejectedKeptMs],
];

/** For each state, the latest `dueAt` that a right clock can write. */
export function latestDue(now: number): (readonly [JobState, number])[] {
  return longestDueMs.map(([state, ms]) => [state, now + ms + clockSlackMs]);
}

/** The latest end of a lease that a right clock can write. */
export function latestLease(now: number): number {
  return now + longestLeaseMs + clockSlackMs;
}
