// Holds the connections to one address of a peer, and replaces them all at once, for new certificates or after a fault.
// `peers-dns-address.ts` decides when.

import { buildConnector } from "undici";
import { FramesDispatcher, type PeerDispatcher } from "./wire/frames-client.ts";
import { createWireDispatcher } from "./wire-pool.ts";

/** Milliseconds to connect. They are few, so that an address that swallows packets is left out within a second. */
const connectTimeoutMs = 750;

/** Options of the connections to one address. */
export interface ConnectionsOptions {
  /** `http://HOST:PORT` or `https:`, with the name. Host, SNI and the certificate's check use it. */
  url: URL;
  /** The address to dial. */
  address: string;
  /** TLS material of connections made from now on. Undefined for plain HTTP. */
  tls: () => buildConnector.BuildOptions | undefined;
  /** Called with the result of each connection for a call. */
  onConnect: (error: Error | undefined) => void;
  /** Called where the process at the address announces that it stops. */
  onGoing: () => void;
  /** Do short calls share a connection, where the peer knows that? */
  frames: boolean;
}

/** The connections to one address, which can be replaced by new ones while calls are under way. */
export interface Connections {
  /** Takes new calls. */
  readonly dispatcher: PeerDispatcher;
  /** From now on calls make new connections. Calls under way end on theirs. */
  renew(): void;
  /** Connections close as their calls end. */
  retire(): void;
  /** Ends every connection. */
  destroy(): Promise<void>;
  /** Connects once, and closes. Answers the fault, if any. */
  probe(): Promise<Error | undefined>;
}

/** Makes {@link Connections}. None is open before the first call. */
export function connectionsTo(options: ConnectionsOptions): Connections {
  const { url, address, onConnect, onGoing } = options;
  /** The one in use, and those that still have calls under way. */
  const all = new Set<PeerDispatcher>();
  let connect = newConnector(options);
  let dispatcher = newDispatcher();

  function newDispatcher(): PeerDispatcher {
    const connector = connect;
    const http = createWireDispatcher(url.origin, {
      connect: (to, callback) =>
        connector(to, (...result) => {
          onConnect(result[0] ?? undefined);
          callback(...result);
        }),
    });
    const made = options.frames ? new FramesDispatcher(http, onGoing) : http;
    all.add(made);
    return made;
  }
  function leave(old: PeerDispatcher): void {
    void old
      .close()
      .catch(() => {})
      .then(() => all.delete(old));
  }
  return {
    get dispatcher() {
      return dispatcher;
    },
    renew() {
      const old = dispatcher;
      connect = newConnector(options);
      dispatcher = newDispatcher();
      leave(old);
    },
    retire: () => leave(dispatcher),
    async destroy() {
      await Promise.all([...all].map((one) => one.destroy()));
    },
    probe() {
      const { host, protocol } = url;
      return new Promise((resolve) => {
        connect({ host, hostname: address, protocol, port: portOf(url) }, (error, socket) => {
          socket?.on("error", () => {}).destroy();
          resolve(error ?? undefined);
        });
      });
    },
  };
}

/** The port of a URL, even where it is its scheme's usual one. */
export function portOf(url: URL): string {
  return url.port || (url.protocol === "https:" ? "443" : "80");
}

function newConnector({ address, tls }: ConnectionsOptions): buildConnector.connector {
  const base = buildConnector({
    ...tls(),
    allowH2: false,
    timeout: connectTimeoutMs,
  }) as buildConnector.connector;
  return (to, callback) => base({ ...to, hostname: address }, callback);
}
