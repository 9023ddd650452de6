import { createSecureServer, createServer, type Http2Server } from "node:http2";
import type { Interceptor } from "@connectrpc/connect";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import { type FastifyInstance, fastify } from "fastify";
import { schemaless } from "../schemaless.ts";
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

/** A server that is not yet listening: gRPC, gRPC-Web and Connect on HTTP/2, with reflection of what it serves. */
export async function createGrpcServer(options: RpcServerOptions): Promise<GrpcServer> {
  const services = [...options.services, ...reflectionServices(options.services)];
  const sessions = new Set<{ close(): void; destroy(): void }>();
  const app = fastify({
    serverFactory: (handler) => {
      const server = createHttp2Server(options.tls, handler as never);
      server.on("session", (session) => {
        sessions.add(session);
        session.once("close", () => sessions.delete(session));
      });
      return server as never;
    },
    // Limits are those of the messages; Fastify's own would cut gRPC streams.
    bodyLimit: maxMessageBytes,
    return503OnClosing: false,
    schemaController: schemaless,
  }) as unknown as FastifyInstance<Http2Server>;
  await app.register(
    fastifyConnectPlugin as never,
    {
      interceptors: options.interceptors,
      readMaxBytes: maxMessageBytes,
      writeMaxBytes: maxMessageBytes,
      routes(router: { service(desc: unknown, impl: unknown): void }) {
        for (const { desc, impl } of services) router.service(desc, impl);
      },
    } as never,
  );
  return {
    async listen(host, port) {
      await app.listen({ host, port });
      const address = app.server.address();
      return typeof address === "object" && address ? address.port : port;
    },
    async close() {
      // An idle h2 session would keep the server open for ever: ask it to go, then end it.
      for (const session of sessions) session.close();
      const ended = app.close();
      const force = setTimeout(() => {
        for (const session of sessions) session.destroy();
      }, 250);
      await ended;
      clearTimeout(force);
    },
  };
}

/** A server for internal callers. */
export interface GrpcServer {
  /** Answers the port that was bound (for port 0). Rejects with EADDRINUSE and the like. */
  listen(host: string, port: number): Promise<number>;
  /** Stops listening and ends what is open. */
  close(): Promise<void>;
}

function createHttp2Server(tls: ServerTls | undefined, handler: () => void): Http2Server {
  if (!tls) return createServer({}, handler);
  const server = createSecureServer(serverTlsOptions(tls), handler);
  followTls(server, tls);
  return server as unknown as Http2Server;
}
