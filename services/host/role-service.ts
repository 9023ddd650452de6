// Starts a service in a process of its own, which other roles call over the wire. Health is answered early, and calls only when
// the service has started.

import { accessInterceptor, callerCheck } from "#kit/rpc/access.ts";
import { serverErrorInterceptor } from "#kit/rpc/interceptors.ts";
import type { Service } from "#kit/rpc/service.ts";
import { refuseNotStarted } from "#kit/rpc/wire/not-started.ts";
import { rpcServerTelemetry } from "#kit/telemetry/rpc.ts";
import { openCertificates, tlsServerMaker } from "./certificates.ts";
import { type HostContext, readinessOf, untilReady } from "./context.ts";
import { followDatabaseTime } from "./database-time.ts";
import { listenForGrpc } from "./grpc-port.ts";
import { createHttpPort, type HttpPort, type PartialHandler } from "./http-port.ts";
import { hostInUrl } from "./listen.ts";
import { createHealthHandler, listenForOps } from "./ops.ts";
import { processService } from "./process-service.ts";
import type { RoleProcess } from "./role.ts";
import { createScratch } from "./scratch.ts";
import { createServices } from "./services.ts";
import { startServices } from "./start-services.ts";
import { type StoreWatch, watchStores } from "./store-watch.ts";
import { openStores } from "./stores.ts";
import { createUpstreamKeys } from "./upstream-keys.ts";
import { createRpcHandler, openPeers } from "./wire.ts";

/** Milliseconds between two rounds that end watches which came back while a process drains. */
const watchesComeBackMs = 100;

/** Starts one service of a mesh. */
export async function startService(
  context: HostContext,
  signal: AbortSignal,
): Promise<RoleProcess> {
  await using stack = new AsyncDisposableStack();
  stack.use(context.workshop);
  const { config } = context;
  const { http } = config.ports;
  const tls = await openCertificates(context, stack);
  const services: Service[] = [];
  let state: "starting" | "started" | "draining" = "starting";
  let watch: StoreWatch | undefined;
  const ready = readinessOf(services, () => state === "draining");
  const notReady = () => (state === "starting" ? "starting" : (ready() ?? watch?.notReady()));
  const handlers: PartialHandler[] = [];
  const port = stack.use(
    createHttpPort({
      address: { ...http, portVariable: "PORT", hostVariable: "HOST" },
      handlers,
      createServer: tlsServerMaker(tls.server),
      isCaller: callerCheck(tokensOf(context)),
    }),
  );
  const opsUrl = await listenForOps(context, notReady, stack);
  handlers.push(createHealthHandler(notReady), (request, response) => {
    if (state !== "starting") return false;
    refuseNotStarted(request, response);
    return true;
  });
  const boundPort = await port.listen();

  const scratch = createScratch(config, stack);
  const stores = await openStores(context, { stack, scratch });
  watch = stack.use(watchStores(context, stores.checks));
  await followDatabaseTime(context, stores, { stack, signal });
  const peers = openPeers(context, { stack, tls: tls.client });
  const keys = createUpstreamKeys(context, config.sealSecrets);
  const { list } = await createServices(context, { stores, scratch, peers, keys, stack });
  services.push(...list);
  await startServices(services, context, { stack, signal });
  const interceptors = [
    rpcServerTelemetry(context),
    serverErrorInterceptor(context),
    accessInterceptor(tokensOf(context)),
  ];
  const rpc = [
    ...services.flatMap((service) => [...service.rpc]),
    processService(context, notReady),
  ];
  handlers.push(createRpcHandler(rpc, interceptors, callerCheck(tokensOf(context))));
  const { grpc } = config.ports;
  const grpcAddress =
    grpc &&
    (await listenForGrpc({
      address: { ...grpc, portVariable: "GRPC_PORT", hostVariable: "HOST" },
      tokens: tokensOf(context),
      ...{ rpc, interceptors, notReady, stack, tls: tls.server },
    }));
  state = "started";
  await untilReady(context, notReady, signal);
  const owned = stack.move();
  return {
    url: `${tls.server ? "https" : "http"}://${hostInUrl(http.host)}:${boundPort}`,
    grpcAddress,
    opsUrl,
    async drain(late) {
      state = "draining";
      await drainService(services, port, context, late);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Goes on serving while the services let their work end. Then takes no new connection, and ends watches that came back. */
async function drainService(
  services: readonly Service[],
  port: HttpPort,
  { clock }: HostContext,
  late: AbortSignal,
): Promise<void> {
  const drained = () => Promise.all(services.map((service) => service.drain(late)));
  port.sendAway();
  await drained();
  let isIdle = false;
  const idle = port.drain(late).then(() => {
    isIdle = true;
  });
  while (!isIdle) {
    await Promise.race([idle, clock.sleep(watchesComeBackMs)]);
    if (!isIdle) await drained();
  }
}

function tokensOf({ config }: HostContext) {
  const { mesh, admin } = config.tokens;
  return { mesh, ...(admin === undefined ? {} : { admin }) };
}
