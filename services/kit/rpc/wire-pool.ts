import { type buildConnector, type Dispatcher, Pool } from "undici";

/** How one attempt at a peer ended. */
export type CallOutcome =
  /** It answered (also with a refusal of its own), or the caller left before it could. */
  | "ok"
  /** A connection was there and broke, or the deadline passed without an answer. */
  | "failed"
  /** No connection came about: nothing was sent. */
  | "unreachable";

/** One address of a peer, taken for one attempt. */
export interface PickedPeer {
  /** Takes the request; its connections go to `origin` alone. */
  readonly dispatcher: Dispatcher;
  /** `http://HOST:PORT` or `https:`, as in its URL: the Host header and what is avoided next. */
  readonly origin: string;
  /** It answers for the last time on this connection: it is about to stop, and others to it should not be used either. */
  going(): void;
  /** Called once, when the attempt is over: for a stream that is its last byte. */
  done(outcome: CallOutcome): void;
}

/** The addresses of one peer, and the choice among them. */
export interface PeerPool {
  /**
   * An address for the next attempt. `tried` are the origins at which earlier attempts of the same call failed: one of
   * those only where there is no other. With an `affinity` it is the same one for all who bring that, as long as it is
   * up; see `affinity.ts`. Undefined where no address is known. A rejection counts as undefined.
   */
  pick(
    tried: readonly string[],
    affinity?: string,
  ): PickedPeer | undefined | Promise<PickedPeer | undefined>;
  /** Looks for addresses anew, where they can change; resolves when the answer, if any came, is in use. */
  lookAgain?(): Promise<void>;
}

/** What the connections to one address are made of. */
export interface WireDispatcherOptions {
  /** TLS material and the like; a function to make sockets, where that changes while the process runs. */
  connect?: buildConnector.BuildOptions | buildConnector.connector;
}

/** Milliseconds to connect; a pod that is gone answers nothing at all. */
const connectTimeoutMs = 2_000;
/**
 * Milliseconds that an idle connection is kept, where the server does not name a shorter time. Below what servers of the
 * mesh keep theirs, so that a request seldom meets a connection which is being closed.
 */
const idleMs = 30_000;

/**
 * The connections to one address, as many as there are calls under way. No time-outs beyond connecting: deadlines belong
 * to calls, and a stream that watches may be silent for long.
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

/** A peer with one address that never changes. Closing ends its connections at once. */
export interface SinglePeer extends PeerPool, AsyncDisposable {}

/** A pool of one address: `http://HOST:PORT` or `https:`. */
export function singlePeer(origin: string, options: WireDispatcherOptions = {}): SinglePeer {
  const dispatcher = createWireDispatcher(origin, options);
  const picked: PickedPeer = { dispatcher, origin, going() {}, done() {} };
  return {
    pick: () => picked,
    [Symbol.asyncDispose]: () => dispatcher.destroy(),
  };
}
