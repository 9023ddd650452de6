import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { type Clock, systemClock } from "#kit/clock.ts";
import { type Ids, randomIds } from "#kit/ids.ts";
import type { Logger } from "#kit/logger.ts";
import { createMetrics, type Metrics } from "#kit/metrics.ts";
import { createPeers } from "#kit/peers.ts";
import { accessInterceptor, tokenInterceptor } from "#kit/rpc/access.ts";
import { createDirectTransport } from "#kit/rpc/direct-transport.ts";
import { healthService } from "#kit/rpc/health.ts";
import { serverErrorInterceptor } from "#kit/rpc/interceptors.ts";
import { createGrpcServer } from "#kit/rpc/server.ts";
import type { Service } from "#kit/rpc/service.ts";
import { openSqlite } from "#kit/sqlite.ts";
import { type Bootstrap, bootstrap } from "./bootstrap.ts";
import type { Config } from "./config.ts";
import { openDataDir } from "./data-dir.ts";
import { openEdge } from "./edge.ts";
import { ConfigError } from "./env.ts";
import { listening } from "./listen.ts";
import { createServices } from "./services.ts";
import { loadTokens } from "./tokens.ts";

/** A running process. */
export interface Mesh extends AsyncDisposable {
  /** Public base URL, ending in `/v1`. */
  readonly baseUrl: string;
  /** HOST:PORT of the gRPC port. */
  readonly grpcAddress: string;
  readonly bootstrap: Bootstrap;
  /** Admin token, for whoever operates this process from inside it. */
  readonly adminToken: string;
  /**
   * Stops being ready, goes on serving until no request is open, then hands back what it holds. When `signal` aborts, what
   * is still open ends with an error event.
   */
  drain(signal: AbortSignal): Promise<void>;
}

/** What a process takes from outside beside its configuration; the overrides are for tests. */
export interface MeshOptions {
  log: Logger;
  /** Aborts a start that is under way. */
  signal: AbortSignal;
  clock?: Clock;
  ids?: Ids;
}

/** What every part of a process shares. */
export interface HostContext {
  config: Config;
  log: Logger;
  clock: Clock;
  ids: Ids;
  metrics: Metrics;
}

/** Starts a process: opens its stores, starts its services in the order of their needs, then its ports. */
export async function startMesh(config: Config, options: MeshOptions): Promise<Mesh> {
  const context: HostContext = {
    config,
    log: options.log,
    clock: options.clock ?? systemClock,
    ids: options.ids ?? randomIds,
    metrics: createMetrics({ processMetrics: true }),
  };
  await using stack = new AsyncDisposableStack();
  const dir = stack.use(openDataDir(config.dataDir));
  const tokens = loadTokens(dir, config.tokens, context.ids);
  mkdirSync(dirname(config.database.file), { recursive: true });
  const database = { kind: "sqlite", sqlite: stack.use(openSqlite(config.database.file)) } as const;

  const services: Service[] = [];
  const serverInterceptors = [serverErrorInterceptor(context), accessInterceptor(tokens)];
  const direct = createDirectTransport({
    services: () => services.flatMap((service) => [...service.rpc]),
    clientInterceptors: [tokenInterceptor(tokens.mesh[0] ?? "")],
    serverInterceptors,
  });
  const peers = createPeers(() => direct);
  const { made, blobs } = await createServices(context, { database, peers, stack });
  services.push(...made);
  for (const service of services) await startService(service, stack, options.signal);

  const state = { draining: false };
  const notReady = () =>
    state.draining
      ? "stopping"
      : services.map((one) => one.notReady()).find((why) => why !== undefined);
  const edge = stack.use(await openEdge(context, { peers, blobs, notReady }));
  const rpc = services.flatMap((service) => [...service.rpc]);
  const grpc = await createGrpcServer({
    services: [...rpc, healthService(rpc, notReady)],
    interceptors: serverInterceptors,
  });
  stack.defer(() => grpc.close());
  await edge.ready(options.signal);
  const done = await bootstrap(dir, config.bootstrap, {
    peers,
    ids: context.ids,
    adminToken: tokens.admin,
  });
  const grpcPort = await listening("GRPC_PORT", config.grpc, () =>
    grpc.listen(config.grpc.host, config.grpc.port),
  );
  const baseUrl = await listening("PORT", config.http, () => edge.listen());

  const owned = stack.move();
  return {
    baseUrl,
    grpcAddress: `${config.grpc.host}:${grpcPort}`,
    bootstrap: done,
    adminToken: tokens.admin,
    async drain(signal) {
      state.draining = true;
      await edge.whenIdle(signal);
      await Promise.all(services.map((service) => service.drain(signal)));
      await edge.close();
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function startService(
  service: Service,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  stack.use(service);
  try {
    await service.start();
  } catch (error) {
    if (service.name !== "catalog") throw error;
    // The catalog's own message lists every fault with its path.
    throw new ConfigError(
      `GENMESH_CATALOG must name a valid catalog file: ${(error as Error).message}`,
    );
  }
}
