// Builds the text service out of its parts. The host calls it. It also decides the order in which the parts stop, so that every
// request is settled.

import type { LiveCatalog } from "#common/agreements/catalog-client.ts";
import type { HoldOperations } from "#common/agreements/hold-client.ts";
import { holdClientOf } from "#common/agreements/hold-wire.ts";
import type { Peers } from "#common/agreements/peers.ts";
import type { TextPort } from "#common/agreements/text-port.ts";
import { leaseMs } from "#common/paid-work/limits.ts";
import { untilAborted, whenAborted } from "#kit/base/abort.ts";
import type { Ids } from "#kit/base/ids.ts";
import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { ImageVerifier } from "#kit/images/index.ts";
import { createJsonReader } from "#kit/json-reader/index.ts";
import type { GuardedFetcher } from "#kit/outside/index.ts";
import { callHeaders, type Principal } from "#kit/rpc/principal.ts";
import { rpcService, type Service } from "#kit/rpc/service.ts";
import { createFairShare, tooManyAtOnce } from "#kit/share/fair-share.ts";
import type { Payers } from "#kit/share/payers.ts";
import type { Database } from "#kit/store/database.ts";
import type { Workshop } from "#kit/threads/workshop.ts";
import type { Clock } from "#kit/time/clock.ts";
import { createLeaseTime } from "#kit/time/lease-time.ts";
import { TextService } from "#proto/genmesh/text/v1/text_service_pb.ts";
import type { UpstreamHistoryKeeper } from "../upstreams/health/history.ts";
import type { UpstreamHealth } from "../upstreams/health/index.ts";
import type { TextUpstreams } from "../upstreams/text/port.ts";
import { createAnswerRooms } from "./answers/answer-room.ts";
import { createAnswering } from "./answers/answering.ts";
import { createTextEvents } from "./base/events.ts";
import { contextCountShare, readFileTimeoutMs, replayShare, stopCountsMs } from "./base/limits.ts";
import { createSoundMeter } from "./files/measuring/meter.ts";
import type { LargeAnswers } from "./large/index.ts";
import { createMeter } from "./paid/meter.ts";
import { createReaper } from "./paid/reaper.ts";
import { createTextHolds } from "./paid/text-holds.ts";
import { createTextPort } from "./port.ts";
import { createProber, type ProbeUpstream } from "./prober.ts";
import type { ImageSources } from "./request/images.ts";
import { createTextRoutes } from "./routes.ts";
import type { UsageStore } from "./store/store.ts";
import { createMongoUsageStore } from "./store/store-mongo.ts";
import { createSqliteUsageStore } from "./store/store-sqlite.ts";
import { CountError, type TokenCounter } from "./tokens/count.ts";

/** Dependencies of the text service. The host made the disposable ones, and disposes of them. */
export interface TextDeps {
  clock: Clock;
  ids: Ids;
  log: Logger;
  metrics: Metrics;
  database: Database;
  /** `media` reads image files of the account. */
  peers: Pick<Peers, "billing" | "media">;
  /** Billing in the same process. Undefined: `peers` has it. */
  holds?: HoldOperations | undefined;
  catalog: LiveCatalog;
  upstreams: TextUpstreams;
  /** The state of all processes. Operators ask the text service for it. */
  health: Pick<UpstreamHealth, "read">;
  /** Their last days. */
  history: Pick<UpstreamHistoryKeeper, "read">;
  /** Asks an upstream which models it has. */
  probeUpstream: ProbeUpstream;
  counter: TokenCounter;
  large: Pick<LargeAnswers, "run">;
  /** Threads for work that would block the event loop. */
  workshop: Workshop;
  /** Gets each account that has a hold. */
  payers?: Payers;
  images: Pick<ImageVerifier, "verify">;
  /** Fetches from image addresses that callers name. */
  outside: Pick<GuardedFetcher, "fetchBytes">;
  /** For development and tests: image addresses may be private and without https. */
  allowPrivateReferences: boolean;
}

export { textMongoSchema } from "./store/store-mongo-docs.ts";

/** The text service: Responses, compaction, Chat Completions, embeddings, transcriptions. `port` is for callers of its process. */
export function createText(deps: TextDeps): Service & { port: TextPort } {
  const { clock, ids, catalog } = deps;
  const store = storeOf(deps.database);
  const events = createTextEvents(deps);
  const holds = createTextHolds(holdClientOf(deps));
  const hurry = new AbortController();
  const counter = endedBy(hurry.signal, deps.counter);
  const common = { clock, ids, store, holds, counter, events, owner: ids.make("text", 12) };
  const reader = createJsonReader(deps.workshop);
  const soundMeter = createSoundMeter(deps.workshop);
  const meter = createMeter(common);
  const reaper = createReaper({ ...common, leaseTime: createLeaseTime(clock, leaseMs) });
  const images = (principal: Principal, requestId: string) => imagesOf(deps, principal, requestId);
  // There are places for all. A request that waits too long waits for others of its account.
  const contextCounts = createFairShare(contextCountShare, { late: tooManyAtOnce });
  const answering = createAnswering({
    ...common,
    ...deps,
    events,
    meter,
    images,
    contextCounts,
    soundMeter,
    replays: createFairShare(replayShare),
    rooms: createAnswerRooms(deps),
  });
  const port = createTextPort({ answering, reader });
  const prober = createProber(deps);
  const routes = createTextRoutes({ ...deps, port, answering, reaper, store, reader, prober });
  const work = new AbortController();
  const sweeps = new AbortController();
  let loops: Promise<void>[] = [];
  return {
    name: "text",
    rpc: [rpcService(TextService, routes)],
    port,
    async start() {
      await store.prepare();
      loops = [meter.keepAlive(work.signal), reaper.run(sweeps.signal)];
    },
    notReady: () => catalog.notReady(),
    async drain(signal) {
      sweeps.abort();
      const settled = answering.whenEmpty().then(() => meter.idle());
      await Promise.race([settled, whenAborted(signal)]);
      // Requests that still arrive are served until the host closes its ports.
      if (signal.aborted) await stop();
    },
    async [Symbol.asyncDispose]() {
      sweeps.abort();
      await stop();
      work.abort();
      await Promise.all(loops);
    },
  };

  /** Ends everything that still runs, and records every end. */
  async function stop(): Promise<void> {
    answering.stop("draining");
    await answering.whenEmpty();
    const rest = new AbortController();
    clock.sleep(stopCountsMs, rest.signal).then(
      () => hurry.abort(new CountError("the process stops")),
      () => {},
    );
    await meter.idle();
    rest.abort();
  }
}

/** A counter whose counts reject once `signal` aborts. */
function endedBy(signal: AbortSignal, counter: TokenCounter): TokenCounter {
  return {
    count: (...asked) => untilAborted(counter.count(...asked), signal),
    measure: (...asked) => untilAborted(counter.measure(...asked), signal),
  };
}

function storeOf(database: Database): UsageStore {
  switch (database.kind) {
    case "sqlite":
      return createSqliteUsageStore(database.sqlite);
    case "mongodb":
      return createMongoUsageStore(database.mongo);
  }
}

function imagesOf(deps: TextDeps, principal: Principal, requestId: string): ImageSources {
  return {
    verifier: deps.images,
    outside: deps.outside,
    allowPrivate: deps.allowPrivateReferences,
    async readFile(fileId, signal) {
      const { content } = await deps.peers.media.readFile(
        { fileId },
        {
          headers: callHeaders(principal, requestId),
          signal,
          timeoutMs: readFileTimeoutMs,
        },
      );
      return content;
    },
  };
}
