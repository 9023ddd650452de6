import type { Interceptor } from "@connectrpc/connect";
import { type AccessTokens, callerCheck } from "#kit/rpc/access.ts";
import { healthService } from "#kit/rpc/health.ts";
import type { Service } from "#kit/rpc/service.ts";
import type { ServerTls } from "#kit/rpc/tls.ts";
import { type Address, hostInUrl, listening } from "./listen.ts";

/** What the gRPC port of a process is made of. */
export interface GrpcPortOptions {
  address: Address;
  services: readonly Service[];
  interceptors: Interceptor[];
  tokens: AccessTokens;
  notReady: () => string | undefined;
  /** Closes it. */
  stack: AsyncDisposableStack;
  tls: ServerTls | undefined;
}

/**
 * Opens the gRPC port and answers its HOST:PORT. What it is made of (a Fastify over HTTP/2, connect's three protocols,
 * reflection) is a tenth of what a process loads, and is loaded here: a process without this port does without.
 */
export async function listenForGrpc(options: GrpcPortOptions): Promise<string> {
  const { address, services, interceptors, tokens, notReady, stack, tls } = options;
  const rpc = services.flatMap((service) => [...service.rpc]);
  const { createGrpcServer } = await import("#kit/rpc/server.ts");
  const server = createGrpcServer({
    services: [...rpc, healthService(rpc, notReady)],
    interceptors,
    isCaller: callerCheck(tokens),
    ...(tls ? { tls } : {}),
  });
  stack.defer(() => server.close());
  const port = await listening(address, () => server.listen(address.host, address.port));
  return `${hostInUrl(address.host)}:${port}`;
}
