import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { UpstreamSchema } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { until } from "../../test/support/until.ts";
import { openSocket } from "./socket.ts";

let server: Server;
let url: string;
let open: Set<Socket>;
beforeEach(async () => {
  open = new Set();
  server = createServer();
  server.on("connection", (socket) => {
    open.add(socket);
    socket.on("end", () => socket.end());
    socket.on("close", () => open.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/ws`;
});
afterEach(async () => {
  await until("every connection is closed", () => open.size === 0);
  server.close();
});

const secrets = (name: string) => (name === "KEY" ? "secret" : undefined);
function call(
  onText: (text: string) => void = () => {},
  signal = new AbortController().signal,
  connectTimeoutMs = 20_000n,
) {
  const upstream = create(UpstreamSchema, { apiKeyEnv: "KEY", connectTimeoutMs });
  return { upstream, url, onText, signal };
}

/** The text that RFC 6455 makes a server add to the client's key. */
const handshake = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** Accepts WebSockets, and resolves with the first. */
function letIn(): Promise<WebSocket> {
  const sockets = new WebSocketServer({ server });
  return new Promise((resolve) => {
    sockets.once("connection", (socket) => {
      socket.on("error", () => {});
      resolve(socket);
    });
  });
}

test("text comes through, pictures and what is too large do not; the key goes along, and no origin", async () => {
  const peer = letIn();
  const texts: string[] = [];
  const seen = once(server, "upgrade");
  using _socket = await openSocket(
    { secrets },
    call((text) => texts.push(text)),
  );
  const [{ headers }] = await seen;
  expect(headers.authorization).toBe("Bearer secret");
  expect(headers.origin).toBeUndefined();
  for (const message of [Buffer.alloc(100), "x".repeat(600_000), "hello"]) {
    (await peer).send(message);
  }
  await until("a text has come", () => texts.length > 0);
  expect(texts).toEqual(["hello"]);
});

test("disposing closes it, though the peer says no farewell", async () => {
  server.once("upgrade", ({ headers }, socket: Socket) => {
    const hash = createHash("sha1").update(`${headers["sec-websocket-key"]}${handshake}`);
    const lines = [`Sec-WebSocket-Accept: ${hash.digest("base64")}`, "Upgrade: websocket"];
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n${lines.join("\r\n")}\r\n\r\n`,
    );
    socket.resume();
  });
  const socket = await openSocket({ secrets }, call());
  expect(open.size).toBe(1);
  socket[Symbol.dispose]();
  await until("the connection is closed", () => open.size === 0);
});

test("an abort closes it, and nothing is handed on after that", async () => {
  const peer = letIn();
  const caller = new AbortController();
  const texts: string[] = [];
  const opened = openSocket(
    { secrets },
    call((text) => texts.push(text), caller.signal),
  );
  using _socket = await opened;
  caller.abort();
  (await peer).send("late");
  await until("the connection is closed", () => open.size === 0);
  expect(texts).toEqual([]);
});

test("one that is refused, one that hangs and one that breaks throw nothing", async () => {
  server.once("upgrade", (_request, socket) => socket.end("HTTP/1.1 403 Forbidden\r\n\r\n"));
  using _refused = await openSocket({ secrets }, call());
  server.once("upgrade", (_request, socket) => socket.resume());
  using _hung = await openSocket({ secrets }, call(undefined, undefined, 300n));
  server.once("upgrade", (_request, socket) => socket.destroy());
  using _broken = await openSocket({ secrets }, call());
  using _away = await openSocket({ secrets }, { ...call(), url: "http://127.0.0.1:9/ws" });
});
