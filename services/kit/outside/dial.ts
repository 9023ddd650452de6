// Connects to addresses that were checked before, so that no name is looked up a second time. `fetcher.ts` gives the connector to
// its HTTP client.

import net from "node:net";
import tls from "node:tls";
import type { buildConnector } from "undici";
import { formatAddress } from "./address.ts";

/** The target of a connection: addresses that were checked (at least one, best first) and a port. */
export type DialTarget = {
  readonly addresses: readonly Uint8Array[];
  readonly port: number;
  readonly attemptTimeoutMs: number;
};

/** Opens a TCP connection to one of the addresses, and to nothing else. */
export type Dial = (target: DialTarget) => net.Socket;

/** Dials the addresses in turn (RFC 8305). No name ever reaches the socket. */
export const dialTcp: Dial = ({ addresses, port, attemptTimeoutMs }) => {
  const found = addresses.map((bytes) => ({
    address: formatAddress(bytes),
    family: bytes.length === 4 ? 4 : 6,
  }));
  const [first] = found;
  if (first === undefined) throw new TypeError("no address to dial");
  if (found.length === 1) return net.connect({ host: first.address, port });
  return net.connect({
    host: "checked.invalid",
    port,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: attemptTimeoutMs,
    lookup: (_host, _options, answer) => answer(null, found),
  });
};

/** Values that a connector needs beside the target. */
export type ConnectorOptions = {
  readonly dial: Dial;
  readonly target: DialTarget;
  /** For https: the name or literal address that the certificate must be for. */
  readonly secureHost: string | undefined;
  /** Destroys the socket, even while it connects. */
  readonly signal: AbortSignal;
};

/** An undici connector that ignores the name in the URL and uses the checked addresses. */
export function checkedConnector(options: ConnectorOptions): buildConnector.connector {
  const { dial, target, secureHost, signal } = options;
  return (_named, done) => {
    let isSettled = false;
    const settle = (error: Error | null, connected?: net.Socket) => {
      if (isSettled) return;
      isSettled = true;
      if (connected === undefined) done(error ?? new Error("not connected"), null);
      else done(null, connected);
    };
    const socket = dial(target);
    const stop = () => socket.destroy();
    signal.addEventListener("abort", stop, { once: true });
    socket.once("close", () => signal.removeEventListener("abort", stop));
    socket.on("error", settle);
    socket.once("connect", () => {
      socket.setNoDelay(true);
      if (secureHost === undefined) settle(null, socket);
      else secure(socket, secureHost, settle);
    });
  };
}

function secure(
  socket: net.Socket,
  host: string,
  settle: (error: Error | null, connected?: net.Socket) => void,
): void {
  // A literal address is no server name (RFC 6066). Its certificate is checked against `host`.
  const name = net.isIP(host) === 0 ? { servername: host } : {};
  const secured = tls.connect({ socket, host, ALPNProtocols: ["http/1.1"], ...name });
  secured.on("error", settle);
  secured.once("secureConnect", () => settle(null, secured));
}
