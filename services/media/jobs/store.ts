import type { PutOffWork } from "#kit/lease-time.ts";
import type { Standing } from "./census.ts";
import type { Job, JobSlot, JobState, MediaKind } from "./job.ts";
import type { JobCommand } from "./lifecycle.ts";

/** A worker's search for work. */
export interface ClaimQuery {
  kind: MediaKind;
  /** Who claims. */
  owner: string;
  now: number;
  /** A lease that ends then or before, or a time to live, is over (see `kit/lease-time.ts`); default `now`. */
  leasesOverAt?: number;
  /** Upstreams (names) that this worker has no place at. */
  fullUpstreams: readonly string[];
  /** Accounts (ids), by upstream, that have their share of this worker's places there; default none. */
  fullAccounts?: ReadonlyMap<string, readonly string[]>;
  /** Most `running` jobs of a model, everywhere; models that are not named have no bound. */
  modelLimits: ReadonlyMap<string, number>;
}

/** A sweeper's search. */
export interface DueQuery {
  states: readonly JobState[];
  now: number;
  until: number;
  limit: number;
}

/** Which jobs; newest first. */
export interface JobsQuery {
  /** Of a key, or of an account. */
  of: { keyId: string } | { accountId: string };
  /** Only these; never empty. */
  states: readonly JobState[];
  kind: MediaKind | undefined;
  /** Only those after this one in the order. */
  after: { createdAt: number; jobId: string } | undefined;
  limit: number;
}

/**
 * Jobs. Each method is one transition of one document, atomic and durable when it resolves; reads see every write that
 * has resolved, made by whichever process. All reject with SERVICE_UNAVAILABLE where the store is away: whether the
 * transition was made is then unknown, and making it again is safe, for every one of them is made at most once.
 */
export interface JobStore extends PutOffWork {
  /** Makes what is missing. */
  open(): Promise<void>;
  /** Writes a new job down, or answers the one that has its idempotency slot (or its id). */
  insert(job: Job): Promise<Job | undefined>;
  /**
   * Applies a command (`step` in lifecycle.ts) to what the job is at that moment. Answers the job as it then is, or
   * undefined where its state does not allow the command, or there is no such job: nothing was changed.
   */
  apply(jobId: string, command: JobCommand): Promise<Job | undefined>;
  /**
   * Claims the fairest due job of a kind: of the account with the fewest `running` jobs of the kind (a lost job that is
   * claimed itself not counted), among these of the one that a worker came to longest ago, and of it the job that has
   * waited longest; found by indexes, however many wait. Of a model with a limit never more jobs are `running` than that, whatever the number of claimers; a lost job has its place
   * already. The answer may be `failing` (`claim` in lifecycle.ts). Undefined: nothing is due.
   */
  claim(query: ClaimQuery): Promise<Job | undefined>;
  /**
   * Does a job of one of these kinds wait, or is one lost, so that it is worth a claim? That may find none all the same:
   * it minds fairness and limits as well. Two looks at indexes.
   */
  isAnyClaimable(kinds: readonly MediaKind[], leasesOverAt: number): Promise<boolean>;
  /**
   * Jobs in these states with `dueAt` passed, by index, at most `limit` of each state, longest due first; their `dueAt` is
   * now `until`, so that nobody else takes them before.
   */
  takeDue(query: DueQuery): Promise<Job[]>;
  /** Is there a job in one of these states with `dueAt` passed? One look at an index; without states, none at all. */
  isAnyDue(states: readonly JobState[], now: number): Promise<boolean>;
  /** Removes a `rejected` job, or a terminal one whose `expiresAt` has passed. False where it is neither. */
  forget(jobId: string, now: number): Promise<boolean>;
  find(jobId: string): Promise<Job | undefined>;
  /** The job that has an idempotency slot. */
  findBySlot(slot: JobSlot): Promise<Job | undefined>;
  /** The job that has an output of this file id, by index. */
  findByOutput(fileId: string): Promise<Job | undefined>;
  list(query: JobsQuery): Promise<Job[]>;
  /** How many jobs that something is still to be done about are in which state; a state without one is left out. */
  census(): Promise<Standing[]>;
}
