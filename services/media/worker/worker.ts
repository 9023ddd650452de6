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

/** What claiming needs. */
export interface WorkerContext extends AttemptContext {
  queue: WakeQueue;
  catalog: Pick<LiveCatalog, "current">;
  /** By which it judges the leases of other workers. */
  leaseTime: LeaseTime;
  /** This worker, in the leases of its jobs. */
  owner: string;
  /** Most jobs of each kind that are rendered here at once; 0: it takes none of the kind, wherever they are made. */
  workers: Readonly<Record<MediaKind, number>>;
}

/** Claims jobs and works on them. */
export interface Worker {
  /** Claims until `signal` aborts; resolves when no further job will be begun. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /** Lets what runs end; what another worker can take up at once is handed back now, the rest when `signal` aborts. */
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
    // A job whose time, or whose attempts, were over has failed instead. Its end may take long, and keeps its own lane alone waiting.
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

/** Lanes that wait for work, each with what makes it look. */
type Waiting = Map<MediaKind, () => void>;

/** What works on the jobs of one kind. */
interface Lane {
  kind: MediaKind;
  /** Begins the next job; false where none is left, or there is no place for it. */
  claim(): Promise<boolean>;
  capacity: Capacity;
  waiting: Waiting;
}

async function runLane(lane: Lane, context: WorkerContext, signal: AbortSignal): Promise<void> {
  const { clock, events } = context;
  await using wakes = context.queue.subscribe(topicOf(lane.kind));
  while (!signal.aborted) {
    // From before the claim on: a place that becomes free while it looks is not missed.
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

/** Looks now and then, also where no lane was woken: most looks find nothing, and one is for all lanes. */
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

/** The job that was claimed, begun where it is this worker's; undefined where nothing is due, or there is no place for it. */
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
 * Where one account has all places of an upstream, its next job, of another kind perhaps, would have the next free place before
 * a job of this kind was looked for again. So another account whose job waits is told to the places.
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
 * Until a wake-up comes, a place has become free since `timesFreed`, or a look has found something. A wake-up whose job has no place here
 * is another process's at its next look.
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
      // It has done what it is for: the claims that follow end only when nothing is due.
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
