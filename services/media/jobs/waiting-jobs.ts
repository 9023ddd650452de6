// Computes the place of a waiting job in its line, and when work on it may begin. Callers see both. The stores bring the jobs
// that wait.

import type { LiveCatalog } from "#common/agreements/catalog-client.ts";
import { turn } from "#kit/base/in-turns.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { JobEvents } from "../events.ts";
import {
  lineLookMs,
  linePage,
  lookShare,
  maxLineAccounts,
  maxLinePages,
  maxLookPauseMs,
  maxQueuePosition,
  measuredJobs,
  measuredLookMs,
} from "../limits.ts";
import { type Bounds, boundsOf } from "./capacity.ts";
import { turnsOf, type WaitingAccount } from "./fairness.ts";
import { isParked, type Job, type MediaKind, upstreamOf } from "./job.ts";
import type { JobStore } from "./store.ts";

/** Jobs of a kind that wait for a worker, and the upstreams and models of those that run. */
export interface WaitingLine {
  lanes: readonly WaitingLane[];
  /** The accounts of the lanes. */
  accounts: ReadonlyMap<string, { running: number; servedAt: number }>;
  /** One for each running job of the kind. */
  running: readonly Omit<RunningJob, "accountId">[];
}

/** A lane: the waiting jobs of one model, upstream and account. Stores search lane by lane, each oldest first. */
export type LaneNames = readonly [model: string, upstream: string, accountId: string];

/** A lane and its jobs: when each was made, oldest first. */
interface WaitingLane {
  lane: LaneNames;
  createdAt: number[];
}

/** A job that runs. */
interface RunningJob {
  accountId: string;
  model: string;
  upstream: string;
}

/** The store's reads for a line, all of one kind. */
interface LineSource {
  /** The first {@link linePage} waiting jobs of the lanes behind this one, by lanes, and in each lane oldest first. */
  page(behind: LaneNames): Promise<{ lane: LaneNames; createdAt: number }[]>;
  running(): Promise<RunningJob[]>;
  /** When these accounts were last served. Accounts that never were are left out. */
  served(accountIds: readonly string[]): Promise<ReadonlyMap<string, number>>;
}

/** Reads a line. Undefined where it is too long for {@link maxLinePages} or {@link maxLineAccounts}. */
export async function readLine(source: LineSource): Promise<WaitingLine | undefined> {
  const lanes = await readWaiting(source);
  if (!lanes) return undefined;
  const ids = [...new Set(lanes.map(({ lane: [, , accountId] }) => accountId))];
  const [running, served] = await Promise.all([
    source.running(),
    ids.length === 0 ? new Map<string, number>() : source.served(ids),
  ]);
  const own = Map.groupBy(running, ({ accountId }) => accountId);
  const accounts = new Map(
    ids.map((id) => [id, { running: own.get(id)?.length ?? 0, servedAt: served.get(id) ?? 0 }]),
  );
  return { lanes, accounts, running: running.map(({ model, upstream }) => ({ model, upstream })) };
}

/** The lanes with their jobs. Where a lane fills a page alone, its other jobs are not read. */
async function readWaiting({ page }: LineSource): Promise<WaitingLane[] | undefined> {
  const lanes: WaitingLane[] = [];
  const accounts = new Set<string>();
  let behind: LaneNames = ["", "", ""];
  for (let pages = 0; pages < maxLinePages; pages++) {
    const rows = await page(behind);
    const isLast = rows.length < linePage;
    const cutOff = rows.at(-1)?.lane;
    const whole = rows.filter(({ lane }) => isLast || !isSame(lane, cutOff));
    for (const { lane, createdAt } of whole.length > 0 ? whole : rows) {
      const last = lanes.at(-1);
      if (last && isSame(lane, last.lane)) last.createdAt.push(createdAt);
      else lanes.push({ lane, createdAt: [createdAt] });
      accounts.add(lane[2]);
    }
    if (accounts.size > maxLineAccounts) return undefined;
    if (isLast) return lanes;
    behind = whole.at(-1)?.lane ?? cutOff ?? behind;
    // SQLite answers at once, so other work gets its turn here.
    await turn();
  }
  return undefined;
}

function isSame(a: LaneNames, b: LaneNames | undefined): boolean {
  return a.every((name, i) => name === b?.[i]);
}

/**
 * Names the line of a waiting job. Jobs in one line wait for the same places. These are the places of an upstream, or of a model whose
 * own places are all taken. Where jobs are rendered here, they are the workers of the kind.
 */
type LineNames = (model: string, upstream: string) => string;

/** The lines of a kind, by the catalog's bounds of its models and by the running jobs. */
export function linesBy(
  { upstreams, modelLimits }: Pick<Bounds, "upstreams" | "modelLimits">,
  running: WaitingLine["running"],
): LineNames {
  const byModel = Map.groupBy(running, ({ model }) => model);
  return (model, upstream) => {
    const limit = modelLimits.get(model) ?? Number.POSITIVE_INFINITY;
    if ((byModel.get(model)?.length ?? 0) >= limit) return `model ${model}`;
    return upstreams.get(upstream) ? "workers" : `upstream ${upstream}`;
  };
}

/** The accounts of these lanes, which share a line. */
export function accountsIn(
  lanes: WaitingLine["lanes"],
  accounts: WaitingLine["accounts"],
): WaitingAccount[] {
  const byAccount = Map.groupBy(lanes, ({ lane: [, , accountId] }) => accountId);
  return [...byAccount].map(([accountId, all]) => {
    const { running = 0, servedAt = 0 } = accounts.get(accountId) ?? {};
    const createdAt = all.flatMap((one) => one.createdAt).sort((a, b) => a - b);
    return { accountId, running, servedAt, createdAt };
  });
}

/** The place of a waiting job. */
export interface QueuePlace {
  /** From 1 on. */
  position: number;
  /** When work on it may begin, in ms since the epoch. Undefined: no job of its line was completed recently. */
  startsAt: number | undefined;
}

/** Answers the places of waiting jobs. */
export interface QueuePlaces {
  /**
   * Undefined where the job does not wait for a worker, is behind the first 1,000, came after the last look, or where the line is
   * unknown. Never rejects.
   */
  of(job: Job): Promise<QueuePlace | undefined>;
}

/** The result of one look at a kind. */
interface LineLook {
  atMs: number;
  nameOf: LineNames;
  lines: ReadonlyMap<string, OneLine>;
}

/** A line, by one look. */
interface OneLine {
  /** By {@link placeName}. */
  positions: ReadonlyMap<string, number>;
  /** Time from one end of a running job of the line to the next, in ms. Undefined where none was completed recently. */
  turnMs: number | undefined;
}

/**
 * Makes it. With any number of questions, one process reads a kind's line at most once a second, for at most a tenth of the time, and
 * only while there are questions.
 */
export function createQueuePlaces({
  clock,
  store,
  events,
  catalog,
}: {
  clock: Clock;
  store: Pick<JobStore, "line" | "list">;
  events: Pick<JobEvents, "trouble">;
  catalog: Pick<LiveCatalog, "current">;
}): QueuePlaces {
  const measured = keptLooks(clock, measuredLookMs, (kind) => newestOf(store, kind));
  const lines = keptLooks(clock, lineLookMs, async (kind): Promise<LineLook | undefined> => {
    try {
      const atMs = clock.now();
      const line = await store.line(kind);
      if (!line) return undefined;
      const nameOf = linesBy(boundsOf(catalog.current().snapshot), line.running);
      const waiting = Map.groupBy(line.lanes, ({ lane: [model, upstream] }) =>
        nameOf(model, upstream),
      );
      const took = waiting.size === 0 ? [] : await measured(kind);
      const isIn = (name: string) => (one: { model: string; upstream: string }) =>
        nameOf(one.model, one.upstream) === name;
      const found = [...waiting].map(([name, lanes]): [string, OneLine] => {
        const usual = usualMs(took.filter(isIn(name)));
        const running = line.running.filter(isIn(name)).length;
        const positions = positionsIn(accountsIn(lanes, line.accounts));
        // While all places are taken, one becomes free each time that a running job ends.
        return [name, { positions, turnMs: usual && usual / Math.max(1, running) }];
      });
      return { atMs, nameOf, lines: new Map(found) };
    } catch (error) {
      events.trouble("waiting jobs could not be read", undefined, error);
      return undefined;
    }
  });
  return {
    async of(job) {
      if (job.state !== "queued" || isParked(job)) return undefined;
      const look = await lines(job.spec.kind);
      if (!look) return undefined;
      const line = look.lines.get(look.nameOf(job.spec.model, upstreamOf(job).name));
      const position = line?.positions.get(placeName(job));
      if (!line || position === undefined) return undefined;
      const startsAt = line.turnMs && look.atMs + Math.round(position * line.turnMs);
      return { position, startsAt };
    },
  };
}

function positionsIn(accounts: readonly WaitingAccount[]): Map<string, number> {
  const positions = new Map<string, number>();
  for (const [before, one] of turnsOf(accounts, maxQueuePosition).entries()) {
    if (!positions.has(placeName(one))) positions.set(placeName(one), before + 1);
  }
  return positions;
}

/** Jobs of an account from the same millisecond share a place. */
function placeName({ accountId, createdAt }: Pick<Job, "accountId" | "createdAt">): string {
  return `${accountId} ${createdAt}`;
}

/** How long a completed job took from first work to its end, in ms, and its place. */
interface Took {
  model: string;
  upstream: string;
  ms: number;
}

/** The newest completed jobs of a kind. */
async function newestOf(store: Pick<JobStore, "list">, kind: MediaKind): Promise<Took[]> {
  const which = { of: "all", states: ["completed"], kind, after: undefined } as const;
  const jobs = await store.list({ ...which, limit: measuredJobs });
  return jobs.flatMap((job) => {
    const { startedAt, completedAt, spec } = job;
    if (startedAt === undefined || completedAt === undefined) return [];
    const ms = Math.max(0, completedAt - startedAt);
    return { model: spec.model, upstream: upstreamOf(job).name, ms };
  });
}

/** The median, in ms. Undefined for an empty list. */
function usualMs(took: readonly Took[]): number | undefined {
  const times = took.map(({ ms }) => ms).sort((a, b) => a - b);
  return times[Math.floor(times.length / 2)];
}

/** A reading of a kind, and when the next may begin: not before it has ended. */
interface Look<T> {
  found: Promise<T>;
  nextAtMs: number;
}

/**
 * Readings of a kind, one at a time. The next begins `ms` after the last one began, or, where that one took long, after a pause that is
 * {@link lookShare} times as long. A failure is not kept.
 */
function keptLooks<T>(
  clock: Clock,
  ms: number,
  read: (kind: MediaKind) => Promise<T>,
): (kind: MediaKind) => Promise<T> {
  const looks = new Map<MediaKind, Look<T>>();
  const begin = (kind: MediaKind): Look<T> => {
    const beganMs = clock.steady();
    const look = { found: read(kind), nextAtMs: Number.POSITIVE_INFINITY };
    look.found.then(
      () => {
        const endedMs = clock.steady();
        const pauseMs = Math.min(lookShare * (endedMs - beganMs), maxLookPauseMs);
        look.nextAtMs = Math.max(beganMs + ms, endedMs + pauseMs);
      },
      () => looks.delete(kind),
    );
    looks.set(kind, look);
    return look;
  };
  return (kind) => {
    const known = looks.get(kind);
    return (known && clock.steady() < known.nextAtMs ? known : begin(kind)).found;
  };
}
