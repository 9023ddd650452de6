// Joins a process with its peers: clients for the services that it calls, and the answer to calls of its own services.

import type { Interceptor } from "@connectrpc/connect";
import { createPeers, type Peers } from "#common/agreements/peers.ts";
import { tokenInterceptor } from "#kit/rpc/access.ts";
import type { IsCaller } from "#kit/rpc/gate.ts";
import { createDnsPeers } from "#kit/rpc/peers-dns.ts";
import type { RpcService } from "#kit/rpc/service.ts";
import type { TlsSource } from "#kit/rpc/tls.ts";
import type { PeerPool } from "#kit/rpc/wire-pool.ts";
import { createWireServer } from "#kit/rpc/wire-server.ts";
import { createWireTransport } from "#kit/rpc/wire-transport.ts";
import { rpcClientTelemetry } from "#kit/telemetry/rpc.ts";
import type { HostContext } from "./context.ts";
import type { PartialHandler } from "./http-port.ts";
import { severalPeers } from "./several-peers.ts";

/** The parts that calls to peers need. */
interface WireDeps {
  /** Closes their connections. */
  stack: AsyncDisposableStack;
  /** For peers that speak TLS. */
  tls: TlsSource | undefined;
}

/** Clients of the peers that the role calls, over the wire. */
export function openPeers(context: HostContext, deps: WireDeps): Peers {
  const { peers, tokens } = context.config;
  const interceptors = [rpcClientTelemetry, tokenInterceptor(tokens.mesh[0] ?? "")];
  return createPeers((name) => {
    // A role's code calls only the peers that the role needs. The other clients exist for the type.
    const urls = peers[name] ?? [];
    const pool = openPool(urls, context, deps);
    return createWireTransport({ pool, baseUrl: urls[0] ?? `http://${name}`, interceptors });
  });
}

/** All addresses behind a peer's URLs. */
function openPool(
  urls: readonly string[],
  { clock, log, config: { frames } }: HostContext,
  { stack, tls }: WireDeps,
): PeerPool {
  const pools = urls.map((url) =>
    stack.use(createDnsPeers({ url, clock, log, frames, ...(tls ? { tls } : {}) })),
  );
  const [only, ...more] = pools;
  return only && more.length === 0 ? only : severalPeers(pools);
}

/** Answers the Connect protocol for these services. */
export function createRpcHandler(
  services: readonly RpcService[],
  interceptors: readonly Interceptor[],
  isCaller: IsCaller,
): PartialHandler {
  const server = createWireServer({ services, interceptors, isCaller });
  return (request, response) => server.handler(request, response);
}
