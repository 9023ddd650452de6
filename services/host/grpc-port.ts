// Opens the port for internal callers of any language. Calls between genmesh's own processes use another port: `http-port.ts`.

import type { Interceptor } from "@connectrpc/connect";
import { type AccessTokens, callerCheck } from "#kit/rpc/access.ts";
import { healthService } from "#kit/rpc/health.ts";
import { rulesInterceptor } from "#kit/rpc/rules.ts";
import type { RpcService } from "#kit/rpc/service.ts";
import type { ServerTls } from "#kit/rpc/tls.ts";
import { type Address, hostInUrl, listening } from "./listen.ts";

/** Options of the gRPC port of a process. */
export interface GrpcPortOptions {
  address: Address;
  rpc: readonly RpcService[];
  interceptors: Interceptor[];
  tokens: AccessTokens;
  notReady: () => string | undefined;
  /** Closes the port. */
  stack: AsyncDisposableStack;
  tls: ServerTls | undefined;
}

/**
 * Opens the gRPC port and answers its HOST:PORT. Its libraries are a Fastify over HTTP/2, connect's three protocols, and reflection.
 * They are a tenth of the code that a process loads, and are loaded here. A process without this port does not load them.
 */
export async function listenForGrpc(options: GrpcPortOptions): Promise<string> {
  const { address, rpc, interceptors, tokens, notReady, stack, tls } = options;
  const { createGrpcServer } = await import("#kit/rpc/server.ts");
  const server = createGrpcServer({
    services: [...rpc, healthService(rpc, notReady)],
    interceptors: [...interceptors, rulesInterceptor()],
    isCaller: callerCheck(tokens),
    ...(tls ? { tls } : {}),
  });
  stack.defer(() => server.close());
  const port = await listening(address, () => server.listen(address.host, address.port));
  return `${hostInUrl(address.host)}:${port}`;
}
