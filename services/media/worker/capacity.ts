import type { Snapshot } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { MediaKind } from "../jobs/job.ts";

/** Places of one process: of each kind, and at each upstream. */
export interface Capacity {
  /** Takes a place; the answer gives it back. */
  take(kind: MediaKind, upstream: string): () => void;
  isFree(kind: MediaKind): boolean;
  running(kind: MediaKind): number;
  /** Upstreams where as many jobs of this process run as their limits allow. */
  fullUpstreams(limits: ReadonlyMap<string, number>): string[];
  /** Resolves when any place becomes free, or `signal` aborts. */
  whenFreed(signal: AbortSignal): Promise<void>;
}

/** Makes it, all free. */
export function createCapacity(workers: Readonly<Record<MediaKind, number>>): Capacity {
  const kinds = new Map<string, number>();
  const upstreams = new Map<string, number>();
  const waiting = new Set<() => void>();
  const add = (map: Map<string, number>, name: string, by: number) => {
    map.set(name, (map.get(name) ?? 0) + by);
  };
  return {
    take(kind, upstream) {
      add(kinds, kind, 1);
      add(upstreams, upstream, 1);
      return () => {
        add(kinds, kind, -1);
        add(upstreams, upstream, -1);
        for (const wake of waiting) wake();
        waiting.clear();
      };
    },
    isFree: (kind) => (kinds.get(kind) ?? 0) < workers[kind],
    running: (kind) => kinds.get(kind) ?? 0,
    fullUpstreams: (limits) =>
      [...limits]
        .filter(([name, most]) => (upstreams.get(name) ?? 0) >= most)
        .map(([name]) => name),
    whenFreed: (signal) =>
      new Promise((resolve) => {
        waiting.add(resolve);
        signal.addEventListener(
          "abort",
          () => {
            waiting.delete(resolve);
            resolve();
          },
          { once: true },
        );
      }),
  };
}

const bounds = new WeakMap<Snapshot, Bounds>();

/** The catalog's bounds by name; what has none is not in them. */
export interface Bounds {
  modelLimits: ReadonlyMap<string, number>;
  upstreamLimits: ReadonlyMap<string, number>;
}

/** Reads the bounds of a snapshot, once. */
export function boundsOf(snapshot: Snapshot): Bounds {
  const known = bounds.get(snapshot);
  if (known) return known;
  const read: Bounds = {
    modelLimits: limitsOf(snapshot.models.map((model) => [model.id, model.maxConcurrent])),
    upstreamLimits: limitsOf(
      Object.values(snapshot.upstreams).map(({ name, maxConcurrent }) => [name, maxConcurrent]),
    ),
  };
  bounds.set(snapshot, read);
  return read;
}

function limitsOf(all: readonly (readonly [string, number])[]): Map<string, number> {
  return new Map(all.filter(([, most]) => most > 0));
}
