import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/**
 * Requests of one connection that may wait for their answers at once. Common clients and proxies do not pipeline at all;
 * a read of 64 KiB holds 1,800 small requests, which without a bound are all begun in one turn of the event loop.
 */
export const maxPipelinedRequests = 8;

/** What Node keeps of a connection that speaks HTTP/1.1; no part of its documented interface. */
interface Parsed {
  parser?: { onIncoming?: ((request: IncomingMessage, keepAlive: boolean) => number) | null };
}

/** What its parser takes for the end of HTTP on a connection: it leaves the rest of what was read alone. */
const stopParsing = 2;

/**
 * Bounds the requests that a connection has open. Those over the bound are not begun: the connection closes behind the
 * answers of those before, which tells the caller that the rest was not processed.
 */
export function boundPipelining(server: Server): void {
  const begun = new WeakMap<Socket, ServerResponse[]>();
  // Looked at when the next request comes: an event for each answer would be work for every request.
  const openOf = (socket: Socket) =>
    (begun.get(socket) ?? []).filter((answer) => !answer.writableFinished && !answer.destroyed);
  // Node's own listener, which was there first, has made the parser by now.
  const watch = (socket: Socket) => {
    const { parser } = socket as Parsed;
    const begin = parser?.onIncoming;
    // A TLS server says `connection` before the handshake, and `secureConnection` with the socket that is parsed.
    if (!parser || !begin) return;
    let isOver = false;
    parser.onIncoming = (request, keepAlive) => {
      if (isOver) return stopParsing;
      const open = openOf(socket);
      begun.set(socket, open);
      if (open.length < maxPipelinedRequests) return begin(request, keepAlive);
      isOver = true;
      closeBehind(socket, open.at(-1));
      return stopParsing;
    };
  };
  server.on("connection", watch);
  server.on("secureConnection", watch);
  server.prependListener("request", (({ socket }, response) => {
    begun.get(socket)?.push(response);
  }) satisfies RequestListener);
}

/** Closes a connection when the last of its answers is out. */
function closeBehind(socket: Socket, last: ServerResponse | undefined): void {
  if (!last) {
    socket.destroy();
    return;
  }
  if (!last.headersSent) last.setHeader("connection", "close");
  last.once("close", () => socket.destroySoon());
}

/** Connections that a port holds at once. */
export interface ConnectionBounds {
  total: number;
  /** Of one address, so that no single machine takes them all. */
  each: number;
  /** Addresses that stand for many callers (proxies): only the total holds for them. */
  isShared(address: string | undefined): boolean;
}

/** Bounds the connections of a server; one over a bound is closed as soon as it comes. */
export function boundConnections(
  server: Server,
  { total, each, isShared }: ConnectionBounds,
): void {
  server.maxConnections = total;
  const counts = new Map<string, number>();
  server.prependListener("connection", (socket: Socket) => {
    const { remoteAddress: address } = socket;
    if (address === undefined || isShared(address)) return;
    const count = (counts.get(address) ?? 0) + 1;
    counts.set(address, count);
    socket.once("close", () => {
      const left = (counts.get(address) ?? 1) - 1;
      if (left === 0) counts.delete(address);
      else counts.set(address, left);
    });
    if (count > each) socket.destroy();
  });
}
