// The gRPC port, for operators' tools and other programs that call the services. Processes of the mesh call each other by
// `wire-server.ts`.

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

/** Options of a server for internal callers. */
export interface RpcServerOptions {
  services: readonly RpcService[];
  /** Outermost first. Every service has the same ones. */
  interceptors: Interceptor[];
  /** Called with the head of each call, except calls of health. Other calls are refused unread. Absent: all are read. */
  isCaller?: IsCaller;
  /** Absent: h2c. */
  tls?: ServerTls;
}

/** A server for internal callers. */
export interface GrpcServer {
  /** Answers the port that was bound (for port 0). Rejects with the system's error, such as EADDRINUSE. */
  listen(host: string, port: number): Promise<number>;
  /** Stops listening and ends the open calls and sessions. */
  close(): Promise<void>;
}

/** Milliseconds after which a session that was asked to end is ended. */
const endSessionsMs = 250;
/**
 * Calls that are open at once on one session. One read of a connection holds more than a thousand heads of calls, and each begins in
 * the same turn of the event loop. Clients make further calls wait, or open another session.
 */
export const maxConcurrentStreams = 256;
/** Sessions that are open at once. Each peer has one or a few. */
export const maxSessions = 1_024;
/** A session ends after this many calls without a token. A peer with a wrong token has had enough answers by then. */
export const maxRefusedCalls = 256;

/** Makes a server that does not listen yet: gRPC, gRPC-Web and Connect on HTTP/2, with reflection of its services. */
export function createGrpcServer(options: RpcServerOptions): GrpcServer {
  const { services, interceptors, tls } = options;
  const app = Fastify({
    http2: true,
    serverFactory: (handler) => createHttp2Server(tls, handler),
    // A call that is still open at the end has `endSessionsMs` to finish, and is not refused before.
    return503OnClosing: false,
    schemaController: schemaless,
    // The router parses queries before any call is refused. No call here has a long query.
    rewriteUrl: ({ url = "/" }) => {
      const at = overlongQueryAt(url);
      return at < 0 ? url : url.slice(0, at);
    },
  });
  // Connect reads the bodies, and itself refuses content types that it does not know.
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
      // An idle h2 session would keep the server open for ever. So it is asked to close, then ended.
      for (const session of sessions) session.close();
      const force = setTimeout(() => {
        for (const session of sessions) session.destroy();
      }, endSessionsMs);
      // A server that never listened gives an error here, and counts as closed.
      await new Promise<void>((resolve) => server.close(() => resolve()));
      clearTimeout(force);
      await app.close();
    },
  };
}

/** Answers calls without a token by their head, and closes their stream. A session with many such calls is ended. */
function refuseUnread(isCaller: IsCaller): onRequestHookHandler {
  const refused = new WeakMap<Http2Session, number>();
  return (request, reply, done) => {
    if (request.is404 || isOpenPath(request.url)) return done();
    if (isCaller(request.headers.authorization)) return done();
    const { status, headers, body } = refusalBeforeBody(request.headers["content-type"]);
    reply.hijack();
    const { stream } = reply.raw as unknown as Http2ServerResponse;
    const { session } = stream;
    // gRPC takes a status without messages only in the last frame of the answer.
    stream.respond({ ":status": status, ...headers }, { endStream: body.length === 0 });
    if (body.length > 0) stream.end(body);
    // Stops the rest of the request, once the answer is out.
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
