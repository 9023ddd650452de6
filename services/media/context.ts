// Says what media's API and its workers need from the host, and makes what both of them share in one process.

import type { ServiceImpl } from "@connectrpc/connect";
import type { LiveCatalog } from "#common/agreements/catalog-client.ts";
import type { HoldOperations } from "#common/agreements/hold-client.ts";
import type { Peers } from "#common/agreements/peers.ts";
import type { Ids } from "#kit/base/ids.ts";
import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { ImageVerifier } from "#kit/images/index.ts";
import type { GuardedFetcher } from "#kit/outside/index.ts";
import type { WakeQueue } from "#kit/queue/port.ts";
import type { Payers } from "#kit/share/payers.ts";
import type { BlobStore } from "#kit/store/blobs.ts";
import type { Database } from "#kit/store/database.ts";
import type { Workshop } from "#kit/threads/workshop.ts";
import type { Clock } from "#kit/time/clock.ts";
import { createLeaseTime, type LeaseTime } from "#kit/time/lease-time.ts";
import type { MediaService } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { MediaUpstreams } from "../upstreams/media/port.ts";
import { createJobEvents, type JobEvents } from "./events.ts";
import type { FailPoints } from "./fail-points.ts";
import type { MediaKind } from "./jobs/job.ts";
import type { JobStore } from "./jobs/store.ts";
import { createMongoJobStore } from "./jobs/store-mongo.ts";
import { createSqliteJobStore } from "./jobs/store-sqlite.ts";
import { createJobChanges, type JobChanges } from "./jobs/watch.ts";
import { leaseMs } from "./limits.ts";
import type { Marking } from "./worker/marks.ts";

/** The parts that both the API and the workers of media need. Disposable parts belong to the host, which made them. */
export interface MediaCommonDeps {
  clock: Clock;
  ids: Ids;
  log: Logger;
  metrics: Metrics;
  database: Database;
  queue: WakeQueue;
  blobs: BlobStore;
  peers: Pick<Peers, "billing">;
  /** Billing in the same process. Undefined: `peers` has it. */
  holds?: HoldOperations | undefined;
  catalog: LiveCatalog;
  upstreams: MediaUpstreams;
  /** Gets each account whose money is held. An account that it does not know has smaller shares. */
  payers?: Payers;
  /** Days for which terminal jobs, their outputs and speech are kept. 0: for ever. */
  retentionDays: number;
  /** The parts that the API and the workers of one process share. Default: new ones, for a process with one of the two. */
  shared?: MediaShared;
  /** Only tests listen. */
  failPoints?: FailPoints;
}

/** The parts that the media service needs. */
export interface MediaDeps extends MediaCommonDeps {
  verifier: ImageVerifier;
  /** Fetches addresses that callers name. */
  fetcher: GuardedFetcher;
  /** The methods about the operator's notices. */
  notices: Pick<ServiceImpl<typeof MediaService>, "listNotices" | "sendTestAlert">;
  /** Threads for work that would block the event loop. */
  workshop: Workshop;
  /** A folder of this process for uploads under way. Made where it does not exist. */
  tempFolder: string;
  /** Bytes an account may store. Default: 1 GiB. */
  quotaBytes?: number;
}

/** The parts that a media worker needs. */
export interface MediaWorkerDeps extends MediaCommonDeps {
  /** Most jobs of each kind at once in this process, 0 to 1,000. Default: 4. */
  workers?: Partial<Record<MediaKind, number>>;
  /** For what made files say of their origin. Default: they stay as they came. */
  marking?: Marking;
}

/**
 * Each process has one. Its counters have one registry, and a watch sees a worker's changes at once. All sweepers and workers notice at
 * the same moment that the clock was set.
 */
export interface MediaShared {
  events: JobEvents;
  changes: JobChanges;
  leaseTime: LeaseTime;
}

/** Makes the parts that the API and the workers of a process share. */
export function createMediaShared(
  deps: Pick<MediaCommonDeps, "clock" | "log" | "metrics">,
): MediaShared {
  return {
    events: createJobEvents(deps),
    changes: createJobChanges(),
    leaseTime: createLeaseTime(deps.clock, leaseMs),
  };
}

const dayMs = 24 * 3_600_000;

/** Days in ms. 0: for ever. */
export function retentionMsOf({ retentionDays }: Pick<MediaCommonDeps, "retentionDays">): number {
  return retentionDays * dayMs;
}

/** The jobs in the process's database. */
export function createJobStore(database: Database): JobStore {
  switch (database.kind) {
    case "sqlite":
      return createSqliteJobStore(database.sqlite);
    case "mongodb":
      return createMongoJobStore(database.mongo);
  }
}
