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
import { type Bootstrap, bootstrap } from "./bootstrap.ts";
import type { Config } from "./config.ts";
import { openDataDir } from "./data-dir.ts";
import { openEdge } from "./edge.ts";
import { ConfigError } from "./env.ts";
import { type Address, checkAddress, listening } from "./listen.ts";
import { createServices } from "./services.ts";
import { openStores } from "./stores.ts";
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

/** Milliseconds between two looks at what is not ready yet. */
const readyPollMs = 5;

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
  const { http, grpc } = addressesOf(config);
  await checkAddress(http);
  await checkAddress(grpc);
  const stores = await openStores(context, stack);

  const services: Service[] = [];
  const serverInterceptors = [serverErrorInterceptor(context), accessInterceptor(tokens)];
  const direct = createDirectTransport({
    services: () => services.flatMap((service) => [...service.rpc]),
    clientInterceptors: [tokenInterceptor(tokens.mesh[0] ?? "")],
    serverInterceptors,
  });
  const peers = createPeers(() => direct);
  services.push(...createServices(context, { ...stores, peers, stack }));
  const starting = { file: config.catalogFile, signal: options.signal };
  for (const service of services) await startService(service, stack, starting);

  const state = { draining: false };
  const notReady = () =>
    state.draining
      ? "stopping"
      : services.map((one) => one.notReady()).find((why) => why !== undefined);
  const edge = stack.use(await openEdge(context, { peers, blobs: stores.blobs, notReady }));
  const rpc = services.flatMap((service) => [...service.rpc]);
  const grpcServer = await createGrpcServer({
    services: [...rpc, healthService(rpc, notReady)],
    interceptors: serverInterceptors,
  });
  stack.defer(() => grpcServer.close());
  await edge.ready(options.signal);
  // Text and media watch the catalog on their own; nobody is told that this process is ready before they have it.
  while (notReady()) await context.clock.sleep(readyPollMs, options.signal);
  const done = await bootstrap(dir, config.bootstrap, {
    peers,
    ids: context.ids,
    adminToken: tokens.admin,
  });
  const grpcPort = await listening(grpc, () => grpcServer.listen(grpc.host, grpc.port));
  const baseUrl = await listening(http, () => edge.listen());

  const owned = stack.move();
  return {
    baseUrl,
    grpcAddress: `${grpc.host}:${grpcPort}`,
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

function addressesOf(config: Config): { http: Address; grpc: Address } {
  return {
    http: { ...config.http, portVariable: "PORT", hostVariable: "HOST" },
    grpc: { ...config.grpc, portVariable: "GRPC_PORT" },
  };
}

async function startService(
  service: Service,
  stack: AsyncDisposableStack,
  { file, signal }: { file: string; signal: AbortSignal },
): Promise<void> {
  signal.throwIfAborted();
  stack.use(service);
  try {
    await service.start();
  } catch (error) {
    if (service.name !== "catalog") throw error;
    // The catalog's own message is a line, then one for every fault with its path.
    const [, first = "", ...more] = (error as Error).message.split("\n").map((line) => line.trim());
    const rest = more.length > 0 ? ` (and ${more.length} more: genmesh catalog check)` : "";
    throw new ConfigError(
      `GENMESH_CATALOG must name a valid catalog file; ${file} is none: ${first}${rest}`,
    );
  }
}
