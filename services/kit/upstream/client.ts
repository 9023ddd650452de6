import type { Pool } from "undici";
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
  /** Milliseconds between two reads of the body; time in which the body is not read does not count. */
  idleTimeoutMs: number;
  /** Milliseconds from the start to the last byte; time in which something lay unread does not count. */
  timeoutMs: number;
  /**
   * It starts something and must not reach the upstream twice: it goes over a connection of its own, so that none turns out
   * to be closed when the request has perhaps been read. Default false.
   */
  once?: boolean | undefined;
  /** Called when a connection is there and the request is being written to it. */
  onSent?: (() => void) | undefined;
  /** Aborting destroys the connection at once and rejects everything with the signal's reason. */
  signal: AbortSignal;
}

/** Room in memory for a whole body. */
export interface BodyRoom {
  /** Up to here it needs none. */
  freeBytes: number;
  /** Its length, where its head says it. */
  announcedBytes: number | undefined;
  /** Resolves when it may have so many bytes, with how many it may have. */
  reach(bytes: number): Promise<number>;
}

/** The body of an answer, for one reader; one that takes nothing holds the sender back. */
export interface HttpBody {
  /** What came in one read of the socket, each time. Fails with {@link UpstreamError}. */
  readonly chunks: Pushed<Buffer>;
  /** The same pulled: what has come since the last call, or the next bytes; undefined at the end. Throws {@link UpstreamError}. */
  next(): Promise<Buffer | undefined>;
  /** All of it. Over `maxBytes`: `too_large`. With `room` its sender is held back while there is none; rejects with what `reach` throws. */
  whole(maxBytes: number, room?: BodyRoom): Promise<Buffer>;
  /** Did the reader keep the sender waiting, so that a break may be its own doing? See `httpLimits.heldBackMs`. */
  isHeldBack(): boolean;
  /** All that matters was read: takes a short rest in, so that the connection can be used again, or closes it. */
  release(): void;
  /** Closes the connection now. Does nothing after the end. */
  close(): void;
}

/** The head of an answer, its body to be read. The body must be read to its end, released or closed. */
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

/** Makes a client with no connections; what it speaks HTTP with is loaded for its first request. Disposing closes all. */
export function createHttpClient(): HttpClient {
  const pools = new Map<string, Pool>();
  let undici: Undici | undefined;
  /** How much a socket had read when it failed: tells a stale connection from a new one. */
  const readBefore = new WeakMap<object, number>();

  function poolFor(origin: string, { connectTimeoutMs, once }: HttpRequest, from: Undici): Pool {
    const key = `${origin} ${connectTimeoutMs} ${once ? "fresh" : "kept"}`;
    const pool = pools.get(key) ?? createPool(from, origin, connectTimeoutMs, readBefore);
    pools.set(key, pool);
    return pool;
  }

  return {
    async request(request) {
      const url = new URL(request.url);
      undici ??= await import("undici");
      const pool = poolFor(url.origin, request, undici);
      for (let retries = 0; ; retries++) {
        try {
          return await exchange({ pool, url, request, readBefore });
        } catch (error) {
          // The other end closed an idle connection as we wrote to it, so it never took the request up. RFC 9110
          // leaves this retry to the client that knows a repeat to be harmless: a generation has no effect but its answer.
          const isStale = error instanceof UpstreamError && error.stale;
          if (!isStale || request.once || retries >= httpLimits.staleRetries) throw error;
        }
      }
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
    // One request on a connection: a stream would hold back the requests that are queued behind it.
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: httpLimits.keepAliveMs,
    maxHeaderSize: httpLimits.headerBytes,
    connect(options, done) {
      connect(options, (error, socket) => {
        if (error) return done(error, null);
        socket.setNoDelay(true);
        // Registered before the pool's own listener, so that it is filled in when the exchange asks.
        socket.once("error", (cause) => readBefore.set(cause, socket.bytesRead));
        done(null, socket);
      });
    },
  });
}
