// The HTTP client for upstreams that the catalog names, and the agreement about its requests and answers. `exchange.ts` makes one
// exchange. URLs that callers name are fetched by kit/outside.

import type { Pool } from "undici";
import type { Awaitable } from "#kit/base/awaitable.ts";
import type { StopSignal } from "#kit/base/stop.ts";
import type { Pushed } from "#kit/stream/push-stream.ts";
import { UpstreamError } from "./errors.ts";
import { exchange, type ReplyHeaders } from "./exchange.ts";
import { httpLimits } from "./limits.ts";

/** A request to a configured upstream. */
export interface HttpRequest {
  method: "GET" | "POST" | "PUT" | "DELETE";
  /** Absolute, http or https. */
  url: string;
  headers: Readonly<Record<string, string>>;
  body?: string | Uint8Array;
  /** Milliseconds to connect. */
  connectTimeoutMs: number;
  /** Milliseconds from the request's last byte to the answer's head. */
  headTimeoutMs: number;
  /** Milliseconds between two reads of the body. Time in which the reader does not read does not count. */
  idleTimeoutMs: number;
  /** Milliseconds from the start to the last byte. Time in which bytes wait for the reader does not count. */
  timeoutMs: number;
  /**
   * The request starts something and must not reach the upstream twice. So it gets a connection of its own. A kept connection may turn
   * out to be closed after the upstream has perhaps read the request. Default: false.
   */
  once?: boolean | undefined;
  /** Called when a connection exists and the request is being written to it. */
  onSent?: (() => void) | undefined;
  /** Aborting destroys the connection at once and rejects everything with the signal's reason. */
  signal: StopSignal;
}

/** Room in memory for a whole body. */
export interface BodyRoom {
  /** Up to this many bytes the body needs no room. */
  freeBytes: number;
  /** The body's length, where the answer's head states it. */
  announcedBytes: number | undefined;
  /** Resolves when the body may have `bytes` in memory, with the number that it may have. */
  reach(bytes: number): Promise<number>;
}

/** The body of an answer, for one reader. A reader that takes nothing holds the sender back. */
export interface HttpBody {
  /** The bytes of one read of the socket, each time. Fails with {@link UpstreamError}. */
  readonly chunks: Pushed<Buffer>;
  /** The same, pulled: the bytes since the last call, or the next bytes. Undefined at the end. Throws {@link UpstreamError}. */
  next(): Promise<Buffer | undefined>;
  /**
   * The whole body. Over `maxBytes` it is `too_large`. With `room`, its sender is held back while there is none. Rejects with the error
   * of `reach`. Most small bodies have come with their heads, and are answered at once.
   */
  whole(maxBytes: number, room?: BodyRoom): Awaitable<Buffer>;
  /** Did the reader keep the sender waiting, so that a break may be the reader's own doing? See `httpLimits.heldBackMs`. */
  isHeldBack(): boolean;
  /** The reader has all that it needs. Reads a short rest, so that the connection can be used again, or closes it. */
  release(): void;
  /** Closes the connection now. Does nothing after the end. */
  close(): void;
}

/**
 * The head of an answer, with its body to be read. The body must be read to its end, released or closed. It is decoded where the sender
 * compressed it against the request.
 */
export interface HttpReply {
  status: number;
  headers: ReplyHeaders;
  body: HttpBody;
}

/** Speaks HTTP/1.1 to configured upstreams over kept-alive connections. Follows no redirects. */
export interface HttpClient extends AsyncDisposable {
  /** Resolves with the answer's head. Throws {@link UpstreamError}, or the signal's reason. */
  request(request: HttpRequest): Promise<HttpReply>;
}

/** Makes a client without connections. Its HTTP library is loaded for its first request. Disposing closes all connections. */
export function createHttpClient(): HttpClient {
  const pools = new Map<string, Pool>();
  let undici: Undici | undefined;
  /** Bytes that a socket had read when it failed. They tell a stale connection from a new one. */
  const readBefore = new WeakMap<object, number>();

  function poolFor(origin: string, { connectTimeoutMs, once }: HttpRequest, from: Undici): Pool {
    const key = `${origin} ${connectTimeoutMs} ${once ? "fresh" : "kept"}`;
    const pool = pools.get(key) ?? createPool(from, origin, connectTimeoutMs, readBefore);
    pools.set(key, pool);
    return pool;
  }

  function send(request: HttpRequest, from: Undici): Promise<HttpReply> {
    return new Promise((resolve, reject) => {
      const url = new URL(request.url);
      const asked = { pool: poolFor(url.origin, request, from), url, request, readBefore };
      let retries = 0;
      const failed = (error: unknown) => {
        // The other end closed an idle connection while we wrote to it, so it never took the request. RFC 9110 leaves this retry to a
        // client that knows that a repeat does no harm. A generation has no effect except its answer.
        const isStale = error instanceof UpstreamError && error.stale;
        if (!isStale || request.once || retries >= httpLimits.staleRetries) return reject(error);
        retries++;
        // The pool has first to take its broken connection out.
        queueMicrotask(() => exchange(asked, resolve, failed));
      };
      exchange(asked, resolve, failed);
    });
  }

  return {
    request(request) {
      if (undici) return send(request, undici);
      return import("undici").then((loaded) => {
        undici = loaded;
        return send(request, loaded);
      });
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...pools.values()].map((pool) => pool.destroy()));
      pools.clear();
    },
  };
}

type Undici = typeof import("undici");

function createPool(
  { buildConnector, Pool }: Undici,
  origin: string,
  connectTimeoutMs: number,
  readBefore: WeakMap<object, number>,
): Pool {
  const connect = buildConnector({ timeout: connectTimeoutMs, allowH2: false });
  return new Pool(origin, {
    connections: httpLimits.connectionsPerOrigin,
    // One request on a connection: a stream would delay the requests that are queued behind it.
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: httpLimits.keepAliveMs,
    maxHeaderSize: httpLimits.headerBytes,
    connect(options, done) {
      connect(options, (error, socket) => {
        if (error) return done(error, null);
        socket.setNoDelay(true);
        // Added before the pool's own listener, so that it is set when the exchange reads it.
        socket.once("error", (cause) => readBefore.set(cause, socket.bytesRead));
        done(null, socket);
      });
    },
  });
}
