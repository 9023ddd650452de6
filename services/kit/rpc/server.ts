import { once } from "node:events";
import {
  createSecureServer,
  createServer,
  type Http2Server,
  type Http2ServerResponse,
  type Http2Session,
  type ServerHttp2Session,
} from "node:http2";
import type { Interceptor } from "@connectrpc/connect";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import Fastify, { type onRequestHookHandler } from "fastify";
import { schemaless } from "#kit/base/schemaless.ts";
import { overlongQueryAt } from "#kit/edge/query-bounds.ts";
import {
  type IsCaller,
  isOpenPath,
  isOpenService,
  maxOpenMessageBytes,
  refusalBeforeBody,
} from "./gate.ts";
import { reflectionServices } from "./reflection.ts";
import type { RpcService } from "./service.ts";
import { followTls, type ServerTls, serverTlsOptions } from "./tls.ts";
import { maxMessageBytes } from "./wire/limits.ts";

/** What a server for internal callers is made of. */
export interface RpcServerOptions {
  services: readonly RpcService[];
  /** Outermost first; the same for every service. */
  interceptors: Interceptor[];
  /** Asked by the head of each call but those of health; the others are refused unread. Absent: all are read. */
  isCaller?: IsCaller;
  /** Absent: h2c. */
  tls?: ServerTls;
}

/** A server for internal callers. */
export interface GrpcServer {
  /** Answers the port that was bound (for port 0). Rejects with EADDRINUSE and the like. */
  listen(host: string, port: number): Promise<number>;
  /** Stops listening and ends the open calls and sessions. */
  close(): Promise<void>;
}

/** Milliseconds after which a session that was asked to end is ended. */
const endSessionsMs = 250;
/**
 * Calls open at once on one session: one read of a connection holds more than a thousand heads of calls, and each is begun
 * in the same turn of the event loop. Clients make further calls wait, or open another session.
 */
export const maxConcurrentStreams = 256;
/** Sessions open at once: peers have one or a few each. */
export const maxSessions = 1_024;
/** Calls without a token on one session, after which it is ended: a peer with a wrong token has heard it often enough. */
export const maxRefusedCalls = 256;

/** A server that is not yet listening: gRPC, gRPC-Web and Connect on HTTP/2, with reflection of what it serves. */
export function createGrpcServer(options: RpcServerOptions): GrpcServer {
  const { services, interceptors, tls } = options;
  const app = Fastify({
    http2: true,
    serverFactory: (handler) => createHttp2Server(tls, handler),
    // A call that is still open at the end has `endSessionsMs` to finish, and is not turned away before.
    return503OnClosing: false,
    schemaController: schemaless,
    // The router parses queries before any call is refused; nothing here has a long one.
    rewriteUrl: ({ url = "/" }) => {
      const at = overlongQueryAt(url);
      return at < 0 ? url : url.slice(0, at);
    },
  });
  // Connect reads the bodies, and says itself which content types it does not know.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, done) => done(null));
  app.setNotFoundHandler((_request, reply) => reply.code(404).send());
  if (options.isCaller) app.addHook("onRequest", refuseUnread(options.isCaller));
  const all = [...services, ...reflectionServices(services)];
  const serve = (served: readonly RpcService[], readMaxBytes: number) =>
    app.register(fastifyConnectPlugin, {
      interceptors,
      readMaxBytes,
      writeMaxBytes: maxMessageBytes,
      routes(router) {
        for (const { desc, impl } of served) router.service(desc, impl);
      },
    });
  const isOpen = ({ desc }: RpcService) => isOpenService(desc.typeName);
  serve(all.filter(isOpen), maxOpenMessageBytes);
  serve(
    all.filter((one) => !isOpen(one)),
    maxMessageBytes,
  );
  const { server } = app;
  const sessions = new Set<ServerHttp2Session>();
  server.on("session", (session) => {
    if (sessions.size >= maxSessions) return session.destroy();
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
  });
  return {
    async listen(host, port) {
      await app.ready();
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
      await app.close();
    },
  };
}

/** Answers calls without a token by their head, and closes their stream; a session that brings many of them is ended. */
function refuseUnread(isCaller: IsCaller): onRequestHookHandler {
  const refused = new WeakMap<Http2Session, number>();
  return (request, reply, done) => {
    if (request.is404 || isOpenPath(request.url)) return done();
    if (isCaller(request.headers.authorization)) return done();
    const { status, headers, body } = refusalBeforeBody(request.headers["content-type"]);
    reply.hijack();
    const { stream } = reply.raw as unknown as Http2ServerResponse;
    const { session } = stream;
    // gRPC takes a status without messages in the last frame of the answer alone.
    stream.respond({ ":status": status, ...headers }, { endStream: body.length === 0 });
    if (body.length > 0) stream.end(body);
    // What is left of the request is told to stop coming, once the answer is out.
    stream.close();
    if (!session) return;
    const count = (refused.get(session) ?? 0) + 1;
    refused.set(session, count);
    if (count >= maxRefusedCalls) session.destroy();
  };
}

type Handler = Parameters<typeof createServer>[1];

function createHttp2Server(tls: ServerTls | undefined, handler: Handler): Http2Server {
  const settings = { maxConcurrentStreams };
  if (!tls) return createServer({ settings }, handler);
  const server = createSecureServer({ ...serverTlsOptions(tls), settings }, handler);
  followTls(server, tls);
  return server as unknown as Http2Server;
}
