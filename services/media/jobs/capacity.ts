// Counts the places that jobs take in this worker process, so that one account or a slow upstream cannot have them all.

import { PlaceUse } from "#kit/share/fair-share.ts";
import { type Clock, systemClock } from "#kit/time/clock.ts";
import type { Snapshot } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { upstreamOfLane } from "../../upstreams/pools/lanes.ts";
import { isLocal } from "../../upstreams/protocols.ts";
import { upstreamJobs, upstreamJobsEach } from "../limits.ts";
import { type Job, type MediaKind, upstreamOf } from "./job.ts";
import type { ClaimQuery } from "./store.ts";

/**
 * Places of one process. A job that is rendered here takes one of its kind's workers. A job at any other upstream mostly waits. It
 * takes one of the many places of its kind at that upstream, and one of those that the catalog allows the upstream. So an upstream that
 * does not answer delays only its own callers.
 */
export interface Capacity {
  /** Takes the job's places. Answers the function that gives them back. */
  take(job: Job): () => void;
  /** Does this process work on jobs of the kind at all? */
  isOpen(kind: MediaKind): boolean;
  running(kind: MediaKind): number;
  /** The upstreams and accounts where a job of the kind has no place now, by the catalog's bounds. */
  full(kind: MediaKind, bounds: Bounds): Full;
  /** Upstreams with a `maxConcurrent` all of whose places one account has. */
  takenByOne(bounds: Bounds): TakenByOne[];
  /**
   * An account without a place waits for one at the upstream. It counts like an account that has one, so the other leaves it the next
   * free place.
   */
  wants(upstream: string, accountId: string): void;
  /** How often a place has become free. */
  timesFreed(): number;
  /** Resolves when a place has become free more than `times` times, or when `signal` aborts. */
  whenFreed(times: number, signal: AbortSignal): Promise<void>;
}

/** Upstreams without a place, and accounts that have their share of the places of an upstream. */
export type Full = Required<Pick<ClaimQuery, "fullUpstreams" | "fullAccounts">>;

/** An upstream all of whose places are one account's. */
export interface TakenByOne {
  upstream: string;
  accountId: string;
}

/** Places that are counted together. */
interface Group {
  taken: number;
  ofAccount: Map<string, number>;
  use: PlaceUse;
}

/** The places of a group, and the number of them that one account may have. */
interface Bound {
  group: Group | undefined;
  places: number;
  each: number;
}

/** Makes it, with all places free. */
export function createCapacity(
  workers: Readonly<Record<MediaKind, number>>,
  clock: Clock = systemClock,
): Capacity {
  return new PlacesOfProcess(workers, clock);
}

/** The places that jobs take, by kind, by upstream and by account. */
class PlacesOfProcess implements Capacity {
  readonly #workers: Readonly<Record<MediaKind, number>>;
  readonly #clock: Clock;
  readonly #kinds = new Map<MediaKind, number>();
  readonly #groups = new Map<string, Group>();
  /** Upstreams of jobs that this process has had. The catalog may not name them any longer. */
  readonly #had = new Map<string, boolean>();
  readonly #waiting = new Set<() => void>();
  #timesFreed = 0;

  constructor(workers: Readonly<Record<MediaKind, number>>, clock: Clock) {
    this.#workers = workers;
    this.#clock = clock;
  }

  take(job: Job): () => void {
    const { kind } = job.spec;
    const { name, protocol } = upstreamOf(job);
    const isBuiltin = isLocal(protocol);
    this.#had.set(name, isBuiltin);
    const own = isBuiltin ? builtinGroup(kind) : remoteGroup(kind, name);
    const leave = [own, upstreamGroup(name)].map((group) => this.#takeIn(group, job.accountId));
    this.#kinds.set(kind, this.running(kind) + 1);
    return () => {
      for (const one of leave) one();
      this.#kinds.set(kind, this.running(kind) - 1);
      this.#timesFreed++;
      for (const wake of this.#waiting) wake();
      this.#waiting.clear();
    };
  }

  isOpen(kind: MediaKind): boolean {
    return this.#workers[kind] > 0;
  }

  running(kind: MediaKind): number {
    return this.#kinds.get(kind) ?? 0;
  }

  full(kind: MediaKind, { upstreams, upstreamLimits }: Bounds): ReturnType<Capacity["full"]> {
    const fullUpstreams: string[] = [];
    const fullAccounts = new Map<string, string[]>();
    for (const [name, isBuiltin] of new Map([...this.#had, ...upstreams])) {
      const bounds = this.#boundsAt(kind, name, isBuiltin, upstreamLimits.get(name));
      if (bounds.some(({ group, places }) => (group?.taken ?? 0) >= places)) {
        fullUpstreams.push(name);
        continue;
      }
      const accounts = bounds.flatMap(({ group, each }) =>
        [...(group?.ofAccount ?? [])].filter(([, jobs]) => jobs >= each).map(([id]) => id),
      );
      if (accounts.length > 0) fullAccounts.set(name, accounts);
    }
    return { fullUpstreams, fullAccounts };
  }

  takenByOne({ upstreamLimits }: Bounds): ReturnType<Capacity["takenByOne"]> {
    return [...upstreamLimits].flatMap(([upstream, limit]) => {
      const { ofAccount, taken = 0 } = this.#groups.get(upstreamGroup(upstream)) ?? {};
      const [accountId, ...others] = ofAccount?.keys() ?? [];
      const isAlone = accountId !== undefined && others.length === 0 && taken >= limit;
      return isAlone ? [{ upstream, accountId }] : [];
    });
  }

  wants(upstream: string, accountId: string): void {
    this.#groups.get(upstreamGroup(upstream))?.use.note(accountId, this.#clock.steady());
  }

  timesFreed(): number {
    return this.#timesFreed;
  }

  whenFreed(times: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (this.#timesFreed > times) return resolve();
      this.#waiting.add(resolve);
      signal.addEventListener(
        "abort",
        () => {
          this.#waiting.delete(resolve);
          resolve();
        },
        { once: true },
      );
    });
  }

  #takeIn(name: string, accountId: string): () => void {
    const group = this.#groups.get(name) ?? { taken: 0, ofAccount: new Map(), use: new PlaceUse() };
    this.#groups.set(name, group);
    group.use.note(accountId, this.#clock.steady());
    add(group, accountId, 1);
    return () => add(group, accountId, -1);
  }

  #boundOf(name: string, places: number): Bound {
    const group = this.#groups.get(name);
    const each = group?.use.placesOfOne(places, this.#clock.steady()) ?? Math.max(1, places);
    return { group, places, each };
  }

  #boundsAt(kind: MediaKind, name: string, isBuiltin: boolean, limit?: number): Bound[] {
    const ofUpstream = limit === undefined ? [] : [this.#boundOf(upstreamGroup(name), limit)];
    if (isBuiltin) {
      return [this.#boundOf(builtinGroup(kind), this.#workers[kind]), ...ofUpstream];
    }
    if (limit !== undefined) return ofUpstream;
    const group = this.#groups.get(remoteGroup(kind, name));
    return [{ group, places: upstreamJobs, each: upstreamJobsEach }];
  }
}

const builtinGroup = (kind: MediaKind) => `builtin ${kind}`;
const remoteGroup = (kind: MediaKind, lane: string) => `${kind} at ${upstreamOfLane(lane)}`;
const upstreamGroup = (lane: string) => `any at ${upstreamOfLane(lane)}`;

function add(group: Group, accountId: string, by: 1 | -1): void {
  const jobs = (group.ofAccount.get(accountId) ?? 0) + by;
  group.taken += by;
  if (jobs > 0) group.ofAccount.set(accountId, jobs);
  else group.ofAccount.delete(accountId);
}

const bounds = new WeakMap<Snapshot, Bounds>();

/** The catalog's bounds by name. A model or upstream without a limit is not among the limits. */
export interface Bounds {
  /** All upstreams: is their output rendered here? */
  upstreams: ReadonlyMap<string, boolean>;
  modelLimits: ReadonlyMap<string, number>;
  upstreamLimits: ReadonlyMap<string, number>;
}

/** Reads the bounds of a snapshot, once. */
export function boundsOf(snapshot: Snapshot): Bounds {
  const known = bounds.get(snapshot);
  if (known) return known;
  const upstreams = Object.values(snapshot.upstreams);
  const read: Bounds = {
    upstreams: new Map(upstreams.map(({ name, protocol }) => [name, isLocal(protocol)])),
    modelLimits: limitsOf(snapshot.models.map((model) => [model.id, model.maxConcurrent])),
    upstreamLimits: limitsOf(upstreams.map(({ name, maxConcurrent }) => [name, maxConcurrent])),
  };
  bounds.set(snapshot, read);
  return read;
}

function limitsOf(all: readonly (readonly [string, number])[]): Map<string, number> {
  return new Map(all.filter(([, most]) => most > 0));
}
