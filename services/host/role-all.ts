// Starts role `all`: every service in this one process, and all its ports. `role.ts` starts the other roles.

import { join } from "node:path";
import { createCatalogView, type LiveCatalog } from "#common/agreements/catalog-client.ts";
import { createPeers, type Peers } from "#common/agreements/peers.ts";
import { createWireText } from "#common/agreements/text-wire.ts";
import { accessInterceptor, tokenInterceptor } from "#kit/rpc/access.ts";
import { createDirectTransport } from "#kit/rpc/direct-transport.ts";
import { serverErrorInterceptor } from "#kit/rpc/interceptors.ts";
import type { Service } from "#kit/rpc/service.ts";
import { rpcClientTelemetry, rpcServerTelemetry } from "#kit/telemetry/rpc.ts";
import { type Bootstrap, bootstrap } from "./bootstrap.ts";
import { openCertificates } from "./certificates.ts";
import type { Config } from "./config.ts";
import {
  createHostContext,
  type HostContext,
  type ProcessOptions,
  readinessOf,
} from "./context.ts";
import { type DataDir, openDataDir } from "./data-dir.ts";
import { openEdge } from "./edge.ts";
import { listenForGrpc } from "./grpc-port.ts";
import { type Address, checkAddress, listening } from "./listen.ts";
import { listenForOps, opsAddress } from "./ops.ts";
import { processService } from "./process-service.ts";
import { createScratch } from "./scratch.ts";
import { createServices } from "./services.ts";
import { startServices } from "./start-services.ts";
import { watchStores } from "./store-watch.ts";
import { openStores, storeOf } from "./stores.ts";
import { adminTokenFile, loadSealSecrets, loadTokens } from "./tokens.ts";
import { createUpstreamKeys, type UpstreamKeys } from "./upstream-keys.ts";

/** A running process of role `all`. */
export interface RoleAllProcess extends AsyncDisposable {
  /** Public base URL, ending in `/v1`. */
  readonly baseUrl: string;
  /** HOST:PORT of the gRPC port. */
  readonly grpcAddress: string;
  /** URL of metrics and health. */
  readonly opsUrl: string;
  readonly bootstrap: Bootstrap;
  /** Admin token, for code that operates this process from inside it. */
  readonly adminToken: string;
  /**
   * Stops being ready, goes on serving until no request is open, then hands back its work. When `signal` aborts, open requests end with
   * an error event.
   */
  drain(signal: AbortSignal): Promise<void>;
}

/** Milliseconds between two checks of a part that is not ready yet. */
const readyPollMs = 5;

/** Starts a process. It opens its stores, starts its services in the order of their needs, then opens its ports. */
export async function startRoleAll(
  config: Config,
  options: ProcessOptions,
): Promise<RoleAllProcess> {
  const context = createHostContext(config, options);
  await using stack = new AsyncDisposableStack();
  stack.use(context.workshop);
  const dir = stack.use(openOwnDataDir(context));
  const tokens = loadTokens(dir, config.tokens, context.ids);
  const keys = createUpstreamKeys(context, loadSealSecrets(dir, config));
  const { http, grpc } = addressesOf(config);
  await checkAddress(http);
  await checkAddress(grpc);
  await checkAddress(opsAddress(config));
  const tls = await openCertificates(context, stack);
  const scratch = createScratch(config, stack);
  const stores = await openStores(context, { stack, scratch });

  const services: Service[] = [];
  const serverInterceptors = [
    rpcServerTelemetry(context),
    serverErrorInterceptor(context),
    accessInterceptor(tokens),
  ];
  const direct = createDirectTransport({
    services: () => services.flatMap((service) => [...service.rpc]),
    clientInterceptors: [rpcClientTelemetry, tokenInterceptor(tokens.mesh[0] ?? "")],
    serverInterceptors,
  });
  const peers = createPeers(() => direct);
  const started = Promise.withResolvers<void>();
  const catalog = followCatalog(context, { peers, keys, started, stack });
  const made = await createServices(context, { stores, scratch, peers, catalog, keys, stack });
  services.push(...made.list);
  await startServices(services, context, { stack, signal: options.signal });
  started.resolve();

  const state = { draining: false };
  const watch = stack.use(watchStores(context, stores.checks));
  const ready = readinessOf(services, () => state.draining);
  const notReady = () => ready() ?? watch.notReady();
  const blobs = storeOf(stores, "blobs");
  const edge = stack.use(
    await openEdge(context, {
      ...{ peers, catalog, blobs, notReady, tls: tls.server },
      text: made.text ?? createWireText(peers.text),
      operatorToken: tokens.admin,
    }),
  );
  const opsUrl = await listenForOps(context, edge.notReady, stack);
  await edge.ready(options.signal);
  // The stores are checked separately. This process does not report itself ready before they have answered.
  while (notReady()) await context.clock.sleep(readyPollMs, options.signal);
  const done = await bootstrap(dir, config.bootstrap, {
    peers,
    ids: context.ids,
    log: context.log,
    adminToken: tokens.admin,
  });
  const baseUrl = await listening(http, () => edge.listen());
  tellAdminToken(context, dir);
  // After the public port: callers need not wait for the ports of operators and other programs.
  const grpcAddress = await listenForGrpc({
    interceptors: serverInterceptors,
    rpc: [...services.flatMap((service) => [...service.rpc]), processService(context, notReady)],
    ...{ address: grpc, tokens, notReady, stack, tls: tls.server },
  });

  const owned = stack.move();
  return {
    baseUrl,
    grpcAddress,
    opsUrl,
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

/** The view of the catalog in this process, from the start of the services on. */
function followCatalog(
  context: HostContext,
  deps: {
    peers: Peers;
    keys: UpstreamKeys;
    started: PromiseWithResolvers<void>;
    stack: AsyncDisposableStack;
  },
): LiveCatalog {
  const { peers, keys, started, stack } = deps;
  const after = started.promise;
  const catalog = stack.use(
    createCatalogView({ ...context, catalog: peers.catalog, after, onKeys: keys.take }),
  );
  // The view's end waits for its start, so this runs before it where the process ends early.
  stack.defer(() => started.resolve());
  return catalog;
}

function openOwnDataDir({ config, log }: HostContext): DataDir {
  const dir = openDataDir(config.dataDir);
  if (dir.isOpenToOthers) {
    log.warn({ folder: dir.path }, "other users can look into the data directory: chmod 700");
  }
  return dir;
}

/** Logs the file of the token that was made here. */
function tellAdminToken({ config, log }: HostContext, dir: DataDir): void {
  if (!config.console || config.tokens.admin !== undefined) return;
  const file = join(dir.path, adminTokenFile);
  log.info({ file }, "an operator signs in to the console with the token in this file");
}

function addressesOf(config: Config): { http: Address; grpc: Address } {
  const { http, grpc } = config.ports;
  if (!grpc) throw new Error("role all has a gRPC port");
  return {
    http: { ...http, portVariable: "PORT", hostVariable: "HOST" },
    grpc: { ...grpc, portVariable: "GRPC_PORT" },
  };
}
