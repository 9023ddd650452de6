import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { WebSocket } from "undici";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { CallContext } from "./call.ts";

/** What an upstream tells over a WebSocket while it is at work. Nothing is sent to it but the request for it. */
export interface SocketCall {
  upstream: Upstream;
  /** http or https, within the origin of the upstream's base URL: its key goes along. */
  url: string;
  /** Called with each message of text that is not larger than {@link maxTextBytes}; binary ones are dropped. Must not throw. */
  onText(text: string): void;
  signal: AbortSignal;
}

/** Largest message that is read, bytes: previews of pictures come as well, and are dropped. A larger one ends the connection. */
const maxMessageBytes = 16 * 1024 * 1024;
/** Largest message of text that is handed on, characters: the state of a few thousand nodes. */
const maxTextBytes = 512 * 1024;

/**
 * Opens a WebSocket at an upstream. Resolves once it is open, or could not be opened: what comes over it is welcome and never
 * needed, so that nothing is thrown where it is refused or breaks. Disposing closes it.
 */
export async function openSocket(
  { secrets }: Pick<CallContext, "secrets">,
  { upstream, url, onText, signal }: SocketCall,
): Promise<Disposable> {
  const { Agent, buildConnector, WebSocket } = await import("undici");
  const timeout = Number(upstream.connectTimeoutMs);
  const connect = buildConnector({ timeout, allowH2: false });
  let connection: Socket | TLSSocket | undefined;
  const dispatcher = new Agent({
    allowH2: false,
    headersTimeout: timeout,
    webSocket: { maxPayloadSize: maxMessageBytes },
    connect(options, done) {
      connect(options, (error, socket) => {
        connection = socket ?? undefined;
        if (error) done(error, null);
        else done(null, socket);
      });
    },
  });
  const key = upstream.apiKeyEnv === "" ? undefined : secrets(upstream.apiKeyEnv);
  const headers = { "user-agent": "genmesh", ...(key && { authorization: `Bearer ${key}` }) };
  const socket = new WebSocket(url.replace(/^http/, "ws"), { dispatcher, headers });
  socket.binaryType = "arraybuffer";
  socket.addEventListener("message", ({ data }) => {
    if (typeof data === "string" && data.length <= maxTextBytes && !signal.aborted) onText(data);
  });
  const close = () => {
    signal.removeEventListener("abort", close);
    socket.close();
    // A peer that does not answer the farewell keeps no connection.
    connection?.destroySoon();
    dispatcher.destroy().catch(() => {});
  };
  signal.addEventListener("abort", close, { once: true });
  await openOrOver(socket, signal);
  return { [Symbol.dispose]: close };
}

function openOrOver(socket: WebSocket, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => resolve();
    for (const event of ["open", "error", "close"]) socket.addEventListener(event, done);
    signal.addEventListener("abort", done, { once: true });
    if (signal.aborted) done();
  });
}
