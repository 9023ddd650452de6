// Says what a transport needs of a peer's addresses, and makes the pool of a peer with one fixed address. `peers-dns.ts` has the
// pool over all addresses of a name.

import { type buildConnector, type Dispatcher, Pool } from "undici";
import { FramesDispatcher } from "./wire/frames-client.ts";

/** The end of one attempt at a peer. */
export type CallOutcome =
  /** The peer answered (perhaps with a refusal of its own), or the caller left before it could. */
  | "ok"
  /** A connection existed and broke, or the deadline passed without an answer. */
  | "failed"
  /** No connection could be made, so no byte was sent. */
  | "unreachable";

/** One address of a peer, taken for one attempt. */
export interface PickedPeer {
  /** Takes the request. Its connections lead to `origin` alone. */
  readonly dispatcher: Pick<Dispatcher, "dispatch">;
  /** `http://HOST:PORT` or `https:`, as in its URL. It is the Host header, and names the address that the next attempt avoids. */
  readonly origin: string;
  /**
   * The peer announced that it is about to stop. This was its last answer on this connection, and its other connections should not be
   * used either.
   */
  going(): void;
  /** Called once, when the attempt is over. For a stream that is at its last byte. */
  done(outcome: CallOutcome): void;
}

/** The addresses of one peer, and the choice among them. */
export interface PeerPool {
  /**
   * An address for the next attempt. `tried` are the origins at which earlier attempts of the same call failed. One of them is used
   * only where there is no other. All calls with the same `affinity` get the same address, as long as it is up: see `affinity.ts`.
   * Undefined where no address is known. A rejection counts as undefined.
   */
  pick(
    tried: readonly string[],
    affinity?: string,
  ): PickedPeer | undefined | Promise<PickedPeer | undefined>;
  /** Looks addresses up again, where they can change. Resolves when the answer, if any came, is in use. */
  lookAgain?(): Promise<void>;
}

/** Options of the connections to one address. */
export interface WireDispatcherOptions {
  /** TLS material and the like. A function that makes sockets, where the material changes while the process runs. */
  connect?: buildConnector.BuildOptions | buildConnector.connector;
}

/** Milliseconds to connect. A pod that is gone answers nothing at all. */
const connectTimeoutMs = 2_000;
/**
 * Milliseconds that an idle connection is kept, where the server names no shorter time. Servers of the mesh keep theirs longer, so that
 * a request seldom meets a connection that is being closed.
 */
const idleMs = 30_000;

/**
 * The connections to one address, as many as there are calls under way. The only time-out is that for connecting. Deadlines belong to
 * calls, and a stream that watches may be silent for long.
 */
export function createWireDispatcher(origin: string, options: WireDispatcherOptions = {}): Pool {
  return new Pool(origin, {
    // A call behind another on the same connection would wait for it.
    pipelining: 1,
    allowH2: false,
    connectTimeout: connectTimeoutMs,
    keepAliveTimeout: idleMs,
    keepAliveMaxTimeout: idleMs,
    headersTimeout: 0,
    bodyTimeout: 0,
    ...(options.connect ? { connect: options.connect } : {}),
  });
}

/** A peer with one address that never changes. Disposing ends its connections at once. */
export interface SinglePeer extends PeerPool, AsyncDisposable {}

/** Options of a peer with one address. */
interface SinglePeerOptions extends WireDispatcherOptions {
  /** Do short calls share a connection, where the peer knows that? Default: no. */
  frames?: boolean;
}

/** A pool of one address: `http://HOST:PORT` or `https:`. */
export function singlePeer(
  origin: string,
  { frames = false, ...options }: SinglePeerOptions = {},
): SinglePeer {
  const http = createWireDispatcher(origin, options);
  const dispatcher = frames ? new FramesDispatcher(http, () => {}) : http;
  const picked: PickedPeer = { dispatcher, origin, going() {}, done() {} };
  return {
    pick: () => picked,
    [Symbol.asyncDispose]: () => dispatcher.destroy(),
  };
}
