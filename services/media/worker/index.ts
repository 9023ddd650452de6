// Builds a media worker from its parts. The host starts it, in media's own process or in one of role media-worker.

import { holdClientOf } from "#common/agreements/hold-wire.ts";
import { whenAborted } from "#kit/base/abort.ts";
import type { Service } from "#kit/rpc/service.ts";
import {
  createJobStore,
  createMediaShared,
  type MediaWorkerDeps,
  retentionMsOf,
} from "../context.ts";
import { noFailPoints } from "../fail-points.ts";
import type { MediaKind } from "../jobs/job.ts";
import { createJobHolds } from "../jobs/job-holds.ts";
import { defaultWorkers, maxWorkers } from "../limits.ts";
import { createMarks } from "./marks.ts";
import { createWorker } from "./worker.ts";

/** A media worker, as the host starts it: claims jobs, makes their images, videos and audio, and ends their holds of money. It has no methods for callers. */
export function createMediaWorker(deps: MediaWorkerDeps): Service {
  const { clock, ids, blobs, queue, upstreams, catalog } = deps;
  const { events, changes, leaseTime } = deps.shared ?? createMediaShared(deps);
  const store = changes.observed(createJobStore(deps.database));
  const worker = createWorker({
    clock,
    ids,
    store,
    queue,
    blobs,
    upstreams,
    catalog,
    holds: createJobHolds(holdClientOf(deps)),
    events,
    marks: createMarks({ clock, catalog, events, marking: deps.marking }),
    failPoints: deps.failPoints ?? noFailPoints,
    retentionMs: retentionMsOf(deps),
    leaseTime,
    owner: ids.make("worker", 12),
    workers: workersOf(deps.workers),
  });
  const claims = new AbortController();
  let claiming: Promise<void> | undefined;
  const stopClaiming = async () => {
    claims.abort();
    await claiming;
  };
  return {
    name: "media-worker",
    rpc: [],
    async start() {
      await store.open();
      // Without a catalog no limit is known.
      const ready = Promise.race([catalog.ready(), whenAborted(claims.signal)]);
      claiming = ready.then(() => worker.run(claims.signal));
    },
    notReady: () => (claiming ? catalog.notReady() : "media-worker: its store is not open yet"),
    async drain(signal) {
      await stopClaiming();
      await worker.drain(signal);
    },
    async [Symbol.asyncDispose]() {
      await stopClaiming();
      await worker.drain(AbortSignal.abort());
    },
  };
}

function workersOf(asked: Partial<Record<MediaKind, number>> = {}): Record<MediaKind, number> {
  const most = (kind: MediaKind) => {
    const workers = asked[kind] ?? defaultWorkers;
    if (Number.isInteger(workers) && workers >= 0 && workers <= maxWorkers) return workers;
    throw new RangeError(`the workers of ${kind} are 0 to ${maxWorkers}`);
  };
  return { image: most("image"), video: most("video"), music: most("music") };
}
