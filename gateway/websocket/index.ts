// Opens and ends the WebSockets of a process: the handshake, how many there may be, keys that are deleted meanwhile, a process
// that stops.

import type { IncomingMessage } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type ServerOptions, type WebSocket, WebSocketServer } from "ws";
import { ErrorReason, isRefusal, refuse } from "#kit/base/errors.ts";
import { createFairShare } from "#kit/share/fair-share.ts";
import type { Edge, SocketSettings } from "../context.ts";
import { malformed } from "../errors.ts";
import { bodyBounds, bodyLimitsBytes } from "../limits.ts";
import { callerOf, conversationOf, idempotencyKeyOf, stopping } from "../request.ts";
import { createSweep } from "../sweep.ts";
import { upgradeOf } from "../upgrade.ts";
import { Connection } from "./connection.ts";
import { createSocketEvents } from "./events.ts";
import {
  closeTimeoutMs,
  drainSpreadMs,
  keptBytesInAll,
  mostOfAccount,
  socketBounds,
  socketSweepMs,
} from "./limits.ts";

/** The WebSockets of a process, on which responses are asked for. */
export interface ResponseSockets {
  /** Makes a WebSocket of an admitted request. Refuses as any route does. */
  accept(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply>;
  /** Sends callers away: idle sockets close, and the others when their request has ended. New ones are refused. */
  drain(): void;
  /** Resolves when all sockets have closed, or when `signal` aborts. Sends callers away as well. */
  whenGone(signal: AbortSignal): Promise<void>;
  /** Closes all sockets. */
  close(): Promise<void>;
}

/** The form of the handshake's key (RFC 6455, 4.1): 16 bytes in base64. */
const handshakeKey = /^[+/0-9A-Za-z]{22}==$/;
/** The version of the protocol in RFC 6455. */
const version = "13";

/** Makes it, without a socket. */
export function openResponseSockets(edge: Omit<Edge, "sockets">): ResponseSockets {
  const sockets = new Sockets(edge);
  edge.admission.onKeysChanged((keyIds) => sockets.keysChanged(keyIds));
  edge.cutOff?.addEventListener("abort", () => sockets.cut());
  return {
    accept: (request, reply) => sockets.accept(request, reply),
    drain: () => sockets.drain(),
    whenGone: (signal) => sockets.whenGone(signal),
    close: () => sockets.close(),
  };
}

class Sockets {
  readonly #edge: Omit<Edge, "sockets">;
  readonly #open = new Set<Connection>();
  readonly #ofKey = new Map<string, Set<Connection>>();
  /** The number of sockets of each account. */
  readonly #ofAccount = new Map<string, number>();
  readonly #events: ReturnType<typeof createSocketEvents>;
  readonly #share: ReturnType<typeof createFairShare>;
  readonly #requestIds = new WeakMap<IncomingMessage, string>();
  readonly #server: WebSocketServer;
  readonly #sweep: () => void;
  readonly #bounds: Required<SocketSettings>;
  #isDraining = false;
  #whenNone: (() => void)[] = [];

  constructor(edge: Omit<Edge, "sockets">) {
    this.#edge = edge;
    const { clock, payers, settings } = edge;
    this.#bounds = { ...socketBounds, ...(settings.webSockets || {}) };
    this.#events = createSocketEvents(edge.metrics);
    this.#share = createFairShare(bodyBounds(keptBytesInAll), {
      clock,
      isPaying: payers.isPaying,
    });
    const look = () => {
      for (const socket of this.#open) socket.look();
    };
    this.#sweep = createSweep(clock, this.#open, { everyMs: socketSweepMs, look });
    this.#server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      maxPayload: bodyLimitsBytes.text,
      // Each socket would have buffers of its own for that.
      perMessageDeflate: false,
      handleProtocols: () => false,
      closeTimeout: closeTimeoutMs,
    } as ServerOptions);
    this.#server.on("headers", (lines: string[], request) => {
      lines.push(`x-request-id: ${this.#requestIds.get(request)}`);
    });
  }

  async accept(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { raw, headers, id } = request;
    const upgrade =
      upgradeOf(raw) ?? refuse(ErrorReason.METHOD_NOT_ALLOWED, { metadata: { allow: "POST" } });
    this.#check(request);
    const caller = callerOf(request);
    reply.hijack();
    this.#requestIds.set(raw, id);
    this.#server.handleUpgrade(raw, upgrade.socket, upgrade.head, (ws) => {
      upgrade.done();
      const { principal } = caller;
      const { authorization } = headers;
      const parts = { edge: this.#edge, events: this.#events, share: this.#share };
      const socket = new Connection(ws, {
        ...parts,
        ...{ principal, authorization, raw: upgrade.socket },
        conversation: conversationOf(headers),
        inFlight: this.#bounds.inFlight,
      });
      this.#add(socket, ws);
    });
    return reply;
  }

  #check(request: FastifyRequest): void {
    const { headers } = request;
    const { principal, accountSuspended } = callerOf(request);
    const key = headers["sec-websocket-key"];
    if (headers["sec-websocket-version"] !== version || !handshakeKey.test(key ?? "")) {
      throw malformed("The handshake of the WebSocket is not that of RFC 6455, version 13.");
    }
    if (idempotencyKeyOf(request) !== undefined) {
      refuse(ErrorReason.INVALID_IDEMPOTENCY_KEY, {
        param: "Idempotency-Key",
        message: "A WebSocket takes no Idempotency-Key. Send POST /responses with it.",
      });
    }
    if (accountSuspended) refuse(ErrorReason.ACCOUNT_SUSPENDED);
    if (this.#isDraining) throw stopping();
    if (this.#open.size >= this.#bounds.most) refuse(ErrorReason.SERVICE_UNAVAILABLE);
    const ofAccount = mostOfAccount(this.#bounds.most);
    if ((this.#ofAccount.get(principal.accountId) ?? 0) >= ofAccount) {
      refuse(ErrorReason.RATE_LIMIT_EXCEEDED, {
        message: `An account may have ${ofAccount} WebSockets open at once.`,
      });
    }
    if ((this.#ofKey.get(principal.keyId)?.size ?? 0) >= socketBounds.ofKey) {
      refuse(ErrorReason.RATE_LIMIT_EXCEEDED, {
        message: `An API key may have ${socketBounds.ofKey} WebSockets open at once.`,
      });
    }
  }

  #add(socket: Connection, ws: WebSocket): void {
    const { keyId, accountId } = socket.principal;
    const ofKey = this.#ofKey.get(keyId) ?? new Set();
    this.#ofKey.set(keyId, ofKey.add(socket));
    this.#open.add(socket);
    this.#ofAccount.set(accountId, (this.#ofAccount.get(accountId) ?? 0) + 1);
    this.#events.opened();
    this.#sweep();
    ws.once("close", (code) => {
      this.#open.delete(socket);
      ofKey.delete(socket);
      if (ofKey.size === 0) this.#ofKey.delete(keyId);
      const rest = (this.#ofAccount.get(accountId) ?? 1) - 1;
      if (rest === 0) this.#ofAccount.delete(accountId);
      else this.#ofAccount.set(accountId, rest);
      this.#events.closed(code);
      if (this.#open.size === 0) this.#wake();
    });
  }

  keysChanged(keyIds: readonly string[] | undefined): void {
    for (const keyId of keyIds ?? [...this.#ofKey.keys()]) {
      for (const socket of this.#ofKey.get(keyId) ?? []) void this.#checkKey(socket);
    }
  }

  async #checkKey(socket: Connection): Promise<void> {
    try {
      await this.#edge.admission.check(socket.authorization);
    } catch (error) {
      // While auth is away, a key is checked with the next request.
      if (!isRefusal(error, ErrorReason.INVALID_API_KEY)) return;
      socket.closeWhenIdle(1008, error);
      socket.cut(error);
    }
  }

  drain(): void {
    if (this.#isDraining) return;
    this.#isDraining = true;
    const idle = [...this.#open].filter((socket) => socket.isIdle);
    for (const socket of this.#open) if (!socket.isIdle) socket.closeWhenIdle(1012);
    for (const [index, socket] of idle.entries()) {
      socket.takeNoMore();
      const afterMs = (index / idle.length) * drainSpreadMs;
      void this.#edge.clock.sleep(afterMs).then(() => socket.closeWhenIdle(1012));
    }
  }

  whenGone(signal?: AbortSignal): Promise<void> {
    this.drain();
    if (this.#open.size === 0 || signal?.aborted) return Promise.resolve();
    signal?.addEventListener("abort", () => this.#wake(), { once: true });
    return new Promise((resolve) => this.#whenNone.push(resolve));
  }

  #wake(): void {
    for (const resolve of this.#whenNone) resolve();
    this.#whenNone = [];
  }

  cut(): void {
    for (const socket of this.#open) {
      socket.closeWhenIdle(1012);
      socket.cut(stopping());
    }
  }

  close(): Promise<void> {
    this.cut();
    // A caller that does not answer the closing frame is cut off by ws.
    return this.whenGone();
  }
}
