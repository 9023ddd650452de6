// Makes a plain request of a WebSocket's handshake, so that it passes the same rules. The folder websocket takes the connection
// over.

import { type IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** A connection that is to become a WebSocket. */
export interface Upgrade {
  socket: Socket;
  /** Bytes behind the handshake that were read already. */
  head: Buffer;
  /** Ends the request, because its connection is a WebSocket now. */
  done(): void;
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>();

/** The connection of a request that asks for a WebSocket and may have one. */
export function upgradeOf(request: IncomingMessage): Upgrade | undefined {
  return upgrades.get(request);
}

/** Does a request want a WebSocket for responses? `url` has no origin. */
export function isForResponses({ method, headers }: IncomingMessage, url: string): boolean {
  if (method !== "GET" || !/^\/v1\/responses(?:\?|$)/.test(url)) return false;
  return isUpgrade(headers.upgrade) || headers["sec-websocket-key"] !== undefined;
}

/** Does a header `Upgrade` ask for a WebSocket? */
export function isUpgrade(upgrade: string | undefined): boolean {
  return /(?:^|[, ])websocket(?:[, ]|$)/i.test(upgrade ?? "");
}

/**
 * Treats handshakes as requests, so that each goes through the same rules as any other. Node emits them as an event of their own, with a
 * connection that has no parser any more. So the connection closes behind an answer that refuses.
 */
export function takeUpgrades(server: Server): void {
  server.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) => {
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    // Node has taken its own listener away.
    socket.on("error", () => socket.destroy());
    response.assignSocket(socket);
    response.once("finish", () => socket.destroySoon());
    upgrades.set(request, {
      socket,
      head,
      done() {
        response.statusCode = 101;
        response.detachSocket(socket);
        response.emit("close");
      },
    });
    server.emit("request", request, response);
  });
}
