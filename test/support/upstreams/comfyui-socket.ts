import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";

/** The WebSockets of a ComfyUI server, one for each `clientId`. A later one replaces an earlier one. */
export interface ComfySockets {
  /** Sends to one client, or to all where that is undefined. */
  send(event: string, data: object, client: string | undefined): void;
  /** A preview. Clients that asked for metadata get them too. */
  sendPreview(client: string | undefined, metadata: object, png: Uint8Array): void;
  onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** The ids of the connected clients. */
  clients(): string[];
  /** Breaks every WebSocket without a closing message. */
  drop(): void;
}

/** Kinds of binary messages, and the number of PNG in a preview (protocol.py, server.py `send_image`). */
const binary = { preview: 1, previewWithMetadata: 4, png: 2 } as const;

/** `refuses` gives a status other than 200 for a connection that is not accepted. `first` is the first message to a client. */
export function comfySockets(
  refuses: (headers: IncomingMessage["headers"]) => number,
  first: () => object,
): ComfySockets {
  const server = new WebSocketServer({ noServer: true });
  const sockets = new Map<string, { socket: WebSocket; takesMetadata: boolean }>();
  /** The running node and its client. A client that connects again gets this as a message. */
  let executing: { client: string; node: string } | undefined;

  const send: ComfySockets["send"] = (type, data, client) => {
    if (type === "executing" && client !== undefined) {
      const { node } = data as { node: string | null };
      executing = node === null ? undefined : { client, node };
    }
    const message = JSON.stringify({ type, data });
    if (client !== undefined) return sockets.get(client)?.socket.send(message);
    for (const { socket } of sockets.values()) socket.send(message);
  };
  const take = (sid: string, socket: WebSocket) => {
    const mine = { socket, takesMetadata: false };
    sockets.set(sid, mine);
    // A connection that the client breaks is no failure of the server.
    socket.on("error", () => undefined);
    socket.on("close", () => {
      if (sockets.get(sid) === mine) sockets.delete(sid);
    });
    socket.once("message", (data) => {
      const text = String(data);
      if (!text.includes('"feature_flags"')) return;
      mine.takesMetadata = JSON.parse(text).data?.supports_preview_metadata === true;
      send("feature_flags", { supports_preview_metadata: true }, sid);
    });
    send("status", { status: first(), sid }, sid);
    if (executing?.client === sid) send("executing", { node: executing.node }, sid);
  };
  return {
    send,
    sendPreview: (client, metadata, png) => {
      const known = sockets.get(client ?? "");
      const text = Buffer.from(JSON.stringify({ ...metadata, image_type: "image/png" }));
      const head = known?.takesMetadata
        ? [uint32(binary.previewWithMetadata), uint32(text.length), text]
        : [uint32(binary.preview), uint32(binary.png)];
      known?.socket.send(Buffer.concat([...head, png]));
    },
    onUpgrade: (request, socket, head) => {
      const url = new URL(request.url ?? "/", "http://comfy");
      const status = /^(\/api)?\/ws$/.test(url.pathname) ? refuses(request.headers) : 404;
      if (status !== 200) return void socket.end(`HTTP/1.1 ${status} Refused\r\n\r\n`);
      const sid = url.searchParams.get("clientId") || randomUUID().replaceAll("-", "");
      server.handleUpgrade(request, socket, head, (client) => take(sid, client));
    },
    clients: () => [...sockets.keys()],
    drop: () => {
      for (const { socket } of sockets.values()) socket.terminate();
    },
  };
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
