import { once } from "node:events";
import { createSecureServer, createServer, type Http2Server } from "node:http2";
import type { Interceptor } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { reflectionServices } from "./reflection.ts";
import type { RpcService } from "./service.ts";
import { followTls, type ServerTls, serverTlsOptions } from "./tls.ts";
import { maxMessageBytes } from "./wire/limits.ts";

/** What a server for internal callers is made of. */
export interface RpcServerOptions {
  services: readonly RpcService[];
  /** Outermost first; the same for every service. */
  interceptors: Interceptor[];
  /** Absent: h2c. */
  tls?: ServerTls;
}

/** A server for internal callers. */
export interface GrpcServer {
  /** Answers the port that was bound (for port 0). Rejects with EADDRINUSE and the like. */
  listen(host: string, port: number): Promise<number>;
  /** Stops listening and ends what is open. */
  close(): Promise<void>;
}

/** Milliseconds after which a session that was asked to end is ended. */
const endSessionsMs = 250;
/**
 * Calls open at once on one session: one read of a connection holds more than a thousand heads of calls, and each is begun
 * in the same turn of the event loop. Clients make further calls wait, or open another session.
 */
const maxConcurrentStreams = 256;

/** A server that is not yet listening: gRPC, gRPC-Web and Connect on HTTP/2, with reflection of what it serves. */
export function createGrpcServer(options: RpcServerOptions): GrpcServer {
  const services = [...options.services, ...reflectionServices(options.services)];
  const handler = connectNodeAdapter({
    interceptors: options.interceptors,
    readMaxBytes: maxMessageBytes,
    writeMaxBytes: maxMessageBytes,
    routes(router) {
      for (const { desc, impl } of services) router.service(desc, impl);
    },
  });
  const server = createHttp2Server(options.tls, handler);
  const sessions = new Set<{ close(): void; destroy(): void }>();
  server.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
  });
  return {
    async listen(host, port) {
      server.listen({ host, port });
      await once(server, "listening");
      const address = server.address();
      return typeof address === "object" && address ? address.port : port;
    },
    async close() {
      // An idle h2 session would keep the server open for ever: ask it to go, then end it.
      for (const session of sessions) session.close();
      const force = setTimeout(() => {
        for (const session of sessions) session.destroy();
      }, endSessionsMs);
      // One that never listened says so here, and is as closed as any.
      await new Promise<void>((resolve) => server.close(() => resolve()));
      clearTimeout(force);
    },
  };
}

type Handler = ReturnType<typeof connectNodeAdapter>;

function createHttp2Server(tls: ServerTls | undefined, handler: Handler): Http2Server {
  const settings = { maxConcurrentStreams };
  if (!tls) return createServer({ settings }, handler);
  const server = createSecureServer({ ...serverTlsOptions(tls), settings }, handler);
  followTls(server, tls);
  return server as unknown as Http2Server;
}
