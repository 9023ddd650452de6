// Opens a WebSocket at an upstream. Only ComfyUI's progress uses one.

import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { WebSocket } from "undici";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { type CallContext, keyOf } from "./call.ts";

/** A WebSocket for an upstream's reports while it works. After the opening request, no byte is sent to it. */
export interface SocketCall {
  upstream: Upstream;
  /** http or https, within the origin of the upstream's base URL. The upstream's key is sent with it. */
  url: string;
  /** Called with each message of text up to {@link maxTextBytes}. Binary messages are dropped. Must not throw. */
  onText(text: string): void;
  signal: AbortSignal;
}

/** Largest message that is read, in bytes. Previews of images come as well, and are dropped. A larger one ends the connection. */
const maxMessageBytes = 16 * 1024 * 1024;
/** Largest message of text that is handed on, in characters: the state of a few thousand nodes. */
const maxTextBytes = 512 * 1024;

/**
 * Opens a WebSocket at an upstream. Resolves once it is open, or could not be opened. Its messages are useful but never needed, so
 * nothing is thrown where it is refused or breaks. Disposing closes it.
 */
export async function openSocket(
  context: Pick<CallContext, "secrets">,
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
  const key = await keyOf(context, upstream);
  const headers = { "user-agent": "genmesh", ...(key && { authorization: `Bearer ${key}` }) };
  const socket = new WebSocket(url.replace(/^http/, "ws"), { dispatcher, headers });
  socket.binaryType = "arraybuffer";
  socket.addEventListener("message", ({ data }) => {
    if (typeof data === "string" && data.length <= maxTextBytes && !signal.aborted) onText(data);
  });
  const close = () => {
    signal.removeEventListener("abort", close);
    socket.close();
    // A peer that does not answer the close must not keep the connection.
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
