import { untilAborted, whenAborted } from "#kit/abort.ts";
import { createCatalogView } from "#kit/catalog-client.ts";
import type { Database } from "#kit/database.ts";
import { createHoldClient } from "#kit/holds.ts";
import { createJsonReader } from "#kit/json-reader/index.ts";
import { createLeaseTime } from "#kit/lease-time.ts";
import { callHeaders, type Principal } from "#kit/rpc/principal.ts";
import { rpcService, type Service } from "#kit/rpc/service.ts";
import { TextService } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { createAnswering } from "./answering.ts";
import type { TextDeps } from "./context.ts";
import { createTextEvents } from "./events.ts";
import { createTextHolds } from "./holds.ts";
import { leaseMs, readFileTimeoutMs, stopCountsMs } from "./limits.ts";
import { createMeter } from "./meter.ts";
import { createReaper } from "./reaper.ts";
import type { ImageSources } from "./request/images.ts";
import { createTextRoutes } from "./routes.ts";
import type { UsageStore } from "./store.ts";
import { createMongoUsageStore } from "./store-mongo.ts";
import { createSqliteUsageStore } from "./store-sqlite.ts";
import type { TokenCounter } from "./tokens/count.ts";
import { createContextCounts } from "./tokens/input-bound.ts";
import { CountError } from "./tokens/thread.ts";

export type { TextDeps } from "./context.ts";
export { textMongoSchema } from "./store-mongo-schema.ts";

/** The text service: Responses, compaction, Chat Completions. */
export function createText(deps: TextDeps): Service {
  const { clock, ids, log } = deps;
  const store = storeOf(deps.database);
  const events = createTextEvents(deps);
  const holds = createTextHolds(createHoldClient(deps.peers.billing, deps));
  const hurry = new AbortController();
  const counter = endedBy(hurry.signal, deps.counter);
  const catalog = createCatalogView({ catalog: deps.peers.catalog, clock, log });
  const common = { clock, ids, store, holds, counter, events, owner: ids.make("text", 12) };
  const reader = createJsonReader();
  const meter = createMeter(common);
  const reaper = createReaper({ ...common, leaseTime: createLeaseTime(clock, leaseMs) });
  const images = (principal: Principal, requestId: string) => imagesOf(deps, principal, requestId);
  const contextCounts = createContextCounts();
  const answering = createAnswering({
    ...common,
    ...deps,
    events,
    catalog,
    meter,
    images,
    contextCounts,
  });
  const work = new AbortController();
  const sweeps = new AbortController();
  let loops: Promise<void>[] = [];
  return {
    name: "text",
    rpc: [rpcService(TextService, createTextRoutes({ answering, reaper, store, ids, reader }))],
    async start() {
      await store.prepare();
      loops = [meter.keepAlive(work.signal), reaper.run(sweeps.signal)];
    },
    notReady: () => catalog.notReady(),
    async drain(signal) {
      sweeps.abort();
      const settled = answering.whenEmpty().then(() => meter.idle());
      await Promise.race([settled, whenAborted(signal)]);
      // What still arrives is served until the host closes its ports.
      if (signal.aborted) await stop();
    },
    async [Symbol.asyncDispose]() {
      sweeps.abort();
      await stop();
      work.abort();
      await Promise.all(loops);
      await catalog[Symbol.asyncDispose]();
      await reader[Symbol.asyncDispose]();
    },
  };

  /** What still runs ends now, and every end is written down. */
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
  return { count: (...asked) => untilAborted(counter.count(...asked), signal) };
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
