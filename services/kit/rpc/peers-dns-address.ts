import { isIPv6 } from "node:net";
import { buildConnector, type Dispatcher } from "undici";
import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import { type CallOutcome, createWireDispatcher, type PickedPeer } from "./wire-pool.ts";

/** Milliseconds to connect. Short, so that an address which swallows packets is left out within a second. */
const connectTimeoutMs = 750;
/** Milliseconds before the first and the longest wait before a later probe of an address that is down. */
const [firstProbeMs, maxProbeMs] = [100, 2_000];
/** Milliseconds between two probes of an address that is up but broke a call: callers that give up are no news. */
const doubtIntervalMs = 1_000;

/** What an address needs of the pool that it belongs to. */
export interface AddressContext {
  /** `http://HOST:PORT` or `https:`, with the name: what Host and TLS show. */
  url: URL;
  clock: Clock;
  log: Logger;
  /** TLS material of connections made from now on; undefined for plain HTTP. */
  tls: () => buildConnector.BuildOptions | undefined;
  /** Hears that an address went down. */
  onDown: () => void;
}

/** One address of a name. */
export interface PeerAddress {
  readonly origin: string;
  /** Calls under way. */
  readonly outstanding: number;
  /** False from a failed connection on until another one came about. */
  readonly isUp: boolean;
  /** Takes it for one attempt. */
  take(): PickedPeer;
  /** Calls from now on make new connections; those under way end on theirs. */
  renew(): void;
  /** No more probes; connections close as their calls end. */
  retire(): void;
  /** Ends every connection. */
  destroy(): Promise<void>;
}

/** An address that is taken to be up until a connection fails. */
export function peerAddress(address: string, context: AddressContext): PeerAddress {
  const { url, clock, log } = context;
  const origin = `${url.protocol}//${isIPv6(address) ? `[${address}]` : address}:${portOf(url)}`;
  const stop = new AbortController();
  /** The one in use, and those on which calls are still under way. */
  const dispatchers = new Set<Dispatcher>();
  const state = { isUp: true, outstanding: 0, failures: 0, isProbing: false, doubtAtMs: -Infinity };
  let connect = newConnector();
  let dispatcher = newDispatcher();

  function newConnector(): buildConnector.connector {
    const base = buildConnector({
      ...context.tls(),
      allowH2: false,
      timeout: connectTimeoutMs,
    }) as buildConnector.connector;
    // The name stays what Host, SNI and the certificate's check see; only what is dialled is the address.
    return (options, callback) => base({ ...options, hostname: address }, callback);
  }
  function newDispatcher(): Dispatcher {
    const connector = connect;
    const made = createWireDispatcher(url.origin, {
      connect: (options, callback) =>
        connector(options, (...result) => {
          const [error] = result;
          if (error) wentDown(error);
          else cameUp();
          callback(...result);
        }),
    });
    dispatchers.add(made);
    return made;
  }
  function leave(old: Dispatcher): void {
    void old
      .close()
      .catch(() => {})
      .then(() => dispatchers.delete(old));
  }
  function renew(): void {
    if (stop.signal.aborted) return;
    const old = dispatcher;
    connect = newConnector();
    dispatcher = newDispatcher();
    leave(old);
  }
  function wentDown(error: Error): void {
    if (!state.isUp || stop.signal.aborted) return;
    state.isUp = false;
    state.failures++;
    log.warn({ peer: url.host, address, code: codeOf(error) }, "an address of a peer is down");
    // Connections to what died without a word would swallow calls once it is back.
    renew();
    context.onDown();
    void probeUntilUp();
  }
  function cameUp(): void {
    if (state.isUp || stop.signal.aborted) return;
    state.isUp = true;
    log.info({ peer: url.host, address }, "an address of a peer is up again");
  }
  async function probeUntilUp(): Promise<void> {
    if (state.isProbing) return;
    state.isProbing = true;
    try {
      // What comes up and fails again at once waits longer each time, until it has answered a call.
      for (let nth = state.failures - 1; !state.isUp; nth++) {
        await clock.sleep(Math.min(maxProbeMs, firstProbeMs * 2 ** nth), stop.signal);
        if (state.isUp || (await probe()) === undefined) cameUp();
      }
    } catch {
      // It is retired.
    } finally {
      state.isProbing = false;
    }
  }
  /** Connects once; answers what went wrong. */
  function probe(): Promise<Error | undefined> {
    const to = { host: url.host, hostname: address, protocol: url.protocol, port: portOf(url) };
    return new Promise((resolve) => {
      connect(to, (error, socket) => {
        socket?.on("error", () => {}).destroy();
        resolve(error ?? undefined);
      });
    });
  }
  async function doubt(): Promise<void> {
    if (!state.isUp || clock.now() - state.doubtAtMs < doubtIntervalMs) return;
    state.doubtAtMs = clock.now();
    const error = await probe();
    if (error) wentDown(error);
  }
  function over(outcome: CallOutcome): void {
    state.outstanding--;
    if (outcome === "ok") state.failures = 0;
    // A connection that failed has been heard of where it was made; the rest may be the call's own fault.
    else void doubt();
  }

  return {
    origin,
    get outstanding() {
      return state.outstanding;
    },
    get isUp() {
      return state.isUp;
    },
    take() {
      state.outstanding++;
      let isOver = false;
      return {
        get dispatcher() {
          return dispatcher;
        },
        origin,
        done(outcome) {
          if (!isOver) over(outcome);
          isOver = true;
        },
      };
    },
    renew,
    retire() {
      stop.abort();
      leave(dispatcher);
    },
    async destroy() {
      stop.abort();
      await Promise.all([...dispatchers].map((one) => one.destroy()));
    },
  };
}

function portOf(url: URL): string {
  return url.port || (url.protocol === "https:" ? "443" : "80");
}

function codeOf(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? error.message;
}
