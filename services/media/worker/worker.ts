// Claims jobs while this process has places for them, and begins an attempt for each. `attempt.ts` does the work.

import type { LiveCatalog } from "#common/agreements/catalog-client.ts";
import type { Subscription, WakeQueue } from "#kit/queue/port.ts";
import type { LeaseTime } from "#kit/time/lease-time.ts";
import {
  type Bounds,
  boundsOf,
  type Capacity,
  createCapacity,
  type Full,
} from "../jobs/capacity.ts";
import { finish } from "../jobs/finish.ts";
import { isOf, type Job, type MediaKind, mediaKinds, upstreamOf } from "../jobs/job.ts";
import { topicOf } from "../jobs/wake.ts";
import { claimPollMs, claimRetryMs } from "../limits.ts";
import { type Attempt, type AttemptContext, beginAttempt } from "./attempt.ts";
import { createCancelWatch } from "./cancels.ts";

/** The parts that claiming needs. */
export interface WorkerContext extends AttemptContext {
  queue: WakeQueue;
  catalog: Pick<LiveCatalog, "current">;
  /** The time by which it judges the leases of other workers. */
  leaseTime: LeaseTime;
  /** The name of this worker in the leases of its jobs. */
  owner: string;
  /** Most jobs of each kind that are rendered here at once. 0: it takes none of the kind, wherever they are rendered. */
  workers: Readonly<Record<MediaKind, number>>;
}

/** Claims jobs and works on them. */
export interface Worker {
  /** Claims until `signal` aborts. Resolves when no further job will be begun. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /** Lets running work end. Jobs that another worker can resume at once are handed back now, the others when `signal` aborts. */
  drain(signal: AbortSignal): Promise<void>;
}

/** Makes a worker. */
export function createWorker(context: WorkerContext): Worker {
  const capacity = createCapacity(context.workers, context.clock);
  const attempts = new Set<Attempt>();
  const cancels = createCancelWatch(attempts, context);

  const begin = (job: Job, claimedAt: number) => {
    const { kind } = job.spec;
    context.events.claimed(job);
    const attempt = beginAttempt(job, claimedAt, context);
    const free = capacity.take(job);
    attempts.add(attempt);
    cancels.changed();
    context.events.running(kind, capacity.running(kind));
    void attempt.done.then(() => {
      attempts.delete(attempt);
      cancels.changed();
      free();
      context.events.running(kind, capacity.running(kind));
    });
  };
  let turn: Promise<unknown> = Promise.resolve();
  // One claim at a time: two lanes must not both take the last place at an upstream.
  const claimNext = async (kind: MediaKind): Promise<boolean> => {
    const claimed = turn.then(() => claimOne(kind, begin, capacity, context));
    turn = claimed.catch(() => {});
    const job = await claimed;
    // A job whose time, or whose attempts, were over has failed instead. Its end may take long, and only its own lane waits for it.
    if (job && !isOf(job, context.owner)) await finish(job, context);
    return job !== undefined;
  };
  const waiting: Waiting = new Map();
  return {
    async run(signal) {
      const lanes = mediaKinds.map((kind) => {
        const claim = () => claimNext(kind);
        return runLane({ kind, claim, capacity, waiting }, context, signal);
      });
      await Promise.all([...lanes, poll(waiting, capacity, context, signal)]);
    },
    async drain(signal) {
      const handBack = (which: (attempt: Attempt) => boolean) => {
        for (const attempt of attempts) if (which(attempt)) attempt.handBack();
      };
      const late = () => handBack(() => true);
      handBack((attempt) => attempt.isResumable());
      if (signal.aborted) late();
      signal.addEventListener("abort", late, { once: true });
      await Promise.all([...attempts].map(({ done }) => done));
      signal.removeEventListener("abort", late);
    },
  };
}

/** Lanes that wait for work, each with the function that makes it look. */
type Waiting = Map<MediaKind, () => void>;

/** The worker's part for the jobs of one kind. */
interface Lane {
  kind: MediaKind;
  /** Begins the next job. False where none is left, or where it has no place. */
  claim(): Promise<boolean>;
  capacity: Capacity;
  waiting: Waiting;
}

async function runLane(lane: Lane, context: WorkerContext, signal: AbortSignal): Promise<void> {
  const { clock, events } = context;
  await using wakes = context.queue.subscribe(topicOf(lane.kind));
  while (!signal.aborted) {
    // Counted from before the claim, so that a place that becomes free during the search is not missed.
    const timesFreed = lane.capacity.timesFreed();
    let isWorkLeft = false;
    try {
      isWorkLeft = await lane.claim();
    } catch (error) {
      events.trouble("jobs could not be claimed", undefined, error);
      await clock.sleep(claimRetryMs, signal).catch(() => {});
    }
    if (!isWorkLeft && !signal.aborted) {
      await untilWoken({ ...lane, timesFreed }, wakes, context, signal);
    }
  }
}

/** Looks now and then, even where no lane was woken. Most looks find nothing, and one serves all lanes. */
async function poll(
  waiting: Waiting,
  capacity: Capacity,
  { clock, leaseTime, store, events }: WorkerContext,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(claimPollMs, signal).catch(() => {});
    const kinds = [...waiting.keys()].filter((kind) => capacity.isOpen(kind));
    if (signal.aborted || kinds.length === 0) continue;
    try {
      if (!(await store.isAnyClaimable(kinds, leaseTime()))) continue;
      for (const kind of kinds) waiting.get(kind)?.();
    } catch (error) {
      events.trouble("jobs could not be looked for", undefined, error);
    }
  }
}

/** The claimed job, which is begun where it belongs to this worker. Undefined where no job is due, or none has a place. */
async function claimOne(
  kind: MediaKind,
  begin: (job: Job, claimedAt: number) => void,
  capacity: Capacity,
  context: WorkerContext,
): Promise<Job | undefined> {
  const { clock, leaseTime, store, owner } = context;
  if (!capacity.isOpen(kind)) return undefined;
  const { snapshot } = context.catalog.current();
  const bounds = boundsOf(snapshot);
  const full = capacity.full(kind, bounds);
  const claimedAt = clock.steady();
  const query = { kind, owner, now: clock.now(), leasesOverAt: leaseTime(), ...full };
  const job = await store.claim({ ...query, modelLimits: bounds.modelLimits });
  if (!job) await lookForOthers(kind, bounds, full, capacity, context);
  else if (isOf(job, owner)) begin(job, claimedAt);
  return job;
}

/**
 * One account may have all places of an upstream. Then its next job, perhaps of another kind, would get the next free place before a
 * job of this kind is looked for again. So the places are informed of another account whose job waits.
 */
async function lookForOthers(
  kind: MediaKind,
  bounds: Bounds,
  full: Full,
  capacity: Capacity,
  { clock, store }: WorkerContext,
): Promise<void> {
  for (const { upstream, accountId } of capacity.takenByOne(bounds)) {
    const waiting = await store.peek({
      kind,
      now: clock.now(),
      fullUpstreams: full.fullUpstreams.filter((name) => name !== upstream),
      fullAccounts: new Map([...full.fullAccounts, [upstream, [accountId]]]),
      modelLimits: bounds.modelLimits,
    });
    if (waiting) capacity.wants(upstreamOf(waiting).name, waiting.accountId);
  }
}

/**
 * Waits until a wake-up comes, a place has become free since `timesFreed`, or a look has found a job. A wake-up whose job has no place
 * here is found by another process's next look.
 */
async function untilWoken(
  { kind, capacity, waiting, timesFreed }: Lane & { timesFreed: number },
  wakes: Subscription,
  { clock, events }: WorkerContext,
  signal: AbortSignal,
): Promise<void> {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const wake = async () => {
    try {
      const delivery = await wakes.next(either);
      // The wake-up has done its work: the claims that follow end only when no job is due.
      await delivery.ack();
    } catch (error) {
      if (either.aborted) return;
      events.trouble("no wake-ups can be had", undefined, error);
      await clock.sleep(claimRetryMs, either).catch(() => {});
    }
  };
  const waking = capacity.isOpen(kind) ? [wake()] : [];
  const found = new Promise<void>((resolve) => waiting.set(kind, resolve));
  await Promise.race([...waking, capacity.whenFreed(timesFreed, either), found]);
  waiting.delete(kind);
  over.abort();
  await Promise.all(waking);
}
