// Makes a port of HTTP/1.1 that lets its open requests end before it closes. Calls of the mesh, metrics and health use it. The
// public port is in `edge.ts`.

import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { boundPipelining } from "#kit/edge/pipelining.ts";
import type { IsCaller } from "#kit/rpc/gate.ts";
import { asksForFrames, serveFrames } from "#kit/rpc/wire/frames-server.ts";
import { type Address, countInFlight, listening, type MakeServer } from "./listen.ts";

/** A port of HTTP/1.1 for internal callers. */
export interface HttpPort extends AsyncDisposable {
  /** Answers the port that was bound. */
  listen(): Promise<number>;
  /** Goes on serving, but so that callers leave. */
  sendAway(): void;
  /**
   * Waits for a while until callers have left, then takes no new connection. Resolves when no request is open and idle connections are
   * closed, or when `signal` aborts.
   */
  drain(signal: AbortSignal): Promise<void>;
}

/** Answers a request. False: the request is not for this handler. */
export type PartialHandler = (request: IncomingMessage, response: ServerResponse) => boolean;

/** Options of a port. */
export interface HttpPortOptions {
  address: Address;
  /** Called one after the other. A request that none of them answers is not found. Handlers may be added while the port listens. */
  handlers: readonly PartialHandler[];
  /** Makes a server that speaks TLS. Default: plain. */
  createServer?: MakeServer | undefined;
  /** Callers for which this answers true may send many calls over one connection. Default: no caller may. */
  isCaller?: IsCaller;
}

/**
 * Milliseconds that an idle connection stays open. Callers keep theirs for less time, so that a call seldom meets a connection that is
 * being closed.
 */
const keepAliveTimeoutMs = 65_000;
/** Milliseconds for reading requests that were accepted at the last moment. On a busy core that takes some turns of the event loop. */
const unreadMs = 250;
/** Milliseconds in which a request's head must have come. */
const headersTimeoutMs = 10_000;

/** Makes a port that does not listen yet. */
export function createHttpPort(options: HttpPortOptions): HttpPort {
  const { address, handlers, isCaller } = options;
  const inFlight = countInFlight();
  const server = inFlight.createServer(
    isCaller ? { shouldUpgradeCallback: asksForFrames } : {},
    (request, response) => {
      if (handlers.some((handler) => handler(request, response))) return;
      response.writeHead(404, { "content-type": "text/plain; charset=utf-8" }).end("not found\n");
    },
    options.createServer,
  );
  const frames = isCaller && serveFrames(server, isCaller);
  boundPipelining(server);
  server.keepAliveTimeout = keepAliveTimeoutMs;
  server.headersTimeout = headersTimeoutMs;
  // A message or a watch may take any time. Its deadline is the call's.
  server.requestTimeout = 0;
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket.setNoDelay(true));
    socket.once("close", () => sockets.delete(socket));
  });
  let closing: Promise<unknown> | undefined;
  const close = () => {
    closing ??= server.listening ? once(server.close(), "close") : Promise.resolve();
    return closing;
  };
  const sendAway = () => {
    inFlight.sendAway();
    frames?.sendAway();
  };
  return {
    async listen() {
      await listening(address, async () => {
        server.listen({ host: address.host, port: address.port });
        await once(server, "listening");
      });
      const bound = server.address();
      return typeof bound === "object" && bound ? bound.port : address.port;
    },
    sendAway,
    async drain(signal) {
      sendAway();
      await inFlight.whenLeft(signal);
      void close();
      await inFlight.whenIdle(signal);
      // A connection that stayed open could bring a further request.
      server.closeIdleConnections();
      // A connection that was accepted, but not read yet, has no request so far.
      await inFlight.whenGone(AbortSignal.any([signal, AbortSignal.timeout(unreadMs)]));
      await inFlight.whenIdle(signal);
    },
    async [Symbol.asyncDispose]() {
      const closed = close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
