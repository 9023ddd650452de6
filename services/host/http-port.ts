import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { boundPipelining } from "#kit/edge/pipelining.ts";
import { type Address, countInFlight, listening, type MakeServer } from "./listen.ts";

/** A port of HTTP/1.1 for internal callers. */
export interface HttpPort extends AsyncDisposable {
  /** Answers the port that was bound. */
  listen(): Promise<number>;
  /** Serves on, but so that callers leave. */
  sendAway(): void;
  /**
   * Waits for a while until callers have left, then takes no new connection; resolves when no request is open and idle
   * connections are closed, or `signal` aborts.
   */
  drain(signal: AbortSignal): Promise<void>;
}

/** Answers a request, or says that it is not its own. */
export type PartialHandler = (request: IncomingMessage, response: ServerResponse) => boolean;

/** What a port is made of. */
export interface HttpPortOptions {
  address: Address;
  /** Asked one after the other; what none takes is not found. They may be added to while the port listens. */
  handlers: readonly PartialHandler[];
  /** Makes a server that speaks TLS; default: plain. */
  createServer?: MakeServer | undefined;
}

/**
 * Milliseconds that an idle connection stays open: longer than callers keep theirs, so that a call seldom meets a
 * connection which is being closed.
 */
const keepAliveTimeoutMs = 65_000;
/** Milliseconds in which what was accepted at the last moment is read: on a busy core some turns of the event loop. */
const unreadMs = 250;
/** Milliseconds in which a request's head must have come. */
const headersTimeoutMs = 10_000;

/** Makes a port that does not listen yet. */
export function createHttpPort(options: HttpPortOptions): HttpPort {
  const { address, handlers } = options;
  const inFlight = countInFlight();
  const server = inFlight.createServer(
    {},
    (request, response) => {
      if (handlers.some((handler) => handler(request, response))) return;
      response.writeHead(404, { "content-type": "text/plain; charset=utf-8" }).end("not found\n");
    },
    options.createServer,
  );
  boundPipelining(server);
  server.keepAliveTimeout = keepAliveTimeoutMs;
  server.headersTimeout = headersTimeoutMs;
  // A message, or a watch, takes as long as it takes: its deadline is the call's.
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
  return {
    async listen() {
      await listening(address, async () => {
        server.listen({ host: address.host, port: address.port });
        await once(server, "listening");
      });
      const bound = server.address();
      return typeof bound === "object" && bound ? bound.port : address.port;
    },
    sendAway: inFlight.sendAway,
    async drain(signal) {
      await inFlight.whenLeft(signal);
      void close();
      await inFlight.whenIdle(signal);
      // What stayed open for a further request would bring one.
      server.closeIdleConnections();
      // What was accepted, and not read yet, is no request so far.
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
