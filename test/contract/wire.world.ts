import { createServer, IncomingMessage, type RequestListener, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { create } from "@bufbuild/protobuf";
import {
  type Client,
  ConnectError,
  createClient,
  type Interceptor,
  type ServiceImpl,
  type Transport,
} from "@connectrpc/connect";
import { connectNodeAdapter, createConnectTransport } from "@connectrpc/connect-node";
import { expect } from "vitest";
import { randomIds } from "#kit/base/ids.ts";
import { createLogger } from "#kit/base/logger.ts";
import { serverErrorInterceptor } from "#kit/rpc/interceptors.ts";
import { type RpcService, rpcService } from "#kit/rpc/service.ts";
import { asksForFrames, serveFrames } from "#kit/rpc/wire/frames-server.ts";
import { singlePeer } from "#kit/rpc/wire-pool.ts";
import { createWireServer } from "#kit/rpc/wire-server.ts";
import { createWireTransport } from "#kit/rpc/wire-transport.ts";
import { MediaService } from "#proto/genmesh/media/v1/media_service_pb.ts";
import {
  type StreamGenerateResponse,
  StreamGenerateResponseSchema,
  TextService,
} from "#proto/genmesh/text/v1/text_service_pb.ts";
import { until } from "../support/until.ts";

/** The client or server of a test: genmesh's own, or the library's. The library's client also speaks JSON. */
export type ClientKind =
  | "our client"
  | "our client with frames"
  | "the stock client"
  | "the stock client with JSON";
export type ServerKind = "our server" | "the stock server";

/** Every pair that must work together. */
export const pairings: [ClientKind, ServerKind][] = [
  ["our client", "our server"],
  ["our client", "the stock server"],
  ["our client with frames", "our server"],
  ["our client with frames", "the stock server"],
  ["the stock client", "our server"],
  ["the stock client with JSON", "our server"],
  // The reference for the others.
  ["the stock client", "the stock server"],
];

export interface WireOptions {
  client: ClientKind;
  server: ServerKind;
  clientInterceptors?: Interceptor[];
  serverInterceptors?: Interceptor[];
  maxMessageBytes?: number;
}

export interface Handlers {
  text?: Partial<ServiceImpl<typeof TextService>>;
  media?: Partial<ServiceImpl<typeof MediaService>>;
}

export interface WireWorld extends AsyncDisposable {
  text: Client<typeof TextService>;
  media: Client<typeof MediaService>;
  origin: string;
  server: Server;
  /** The server's open connections. */
  sockets: Set<Socket>;
  /** The server's requests, in order. */
  requests: IncomingMessage[];
}

/** One client and one server with a real connection between them. */
export async function wireWorld(options: WireOptions, handlers: Handlers): Promise<WireWorld> {
  await using stack = new AsyncDisposableStack();
  const services = [
    rpcService(TextService, (handlers.text ?? {}) as ServiceImpl<typeof TextService>),
    rpcService(MediaService, (handlers.media ?? {}) as ServiceImpl<typeof MediaService>),
  ];
  const requests: IncomingMessage[] = [];
  const listener = listenerOf(options, services);
  const server = createServer({ shouldUpgradeCallback: asksForFrames }, (req, res) => {
    requests.push(req);
    listener(req, res);
  });
  const isFramed = options.client.endsWith("frames") && options.server === "our server";
  if (isFramed) serveFrames(server);
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stack.defer(async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const transport = transportTo(origin, options, stack);
  if (isFramed) {
    // The first calls take HTTP, until the connection of frames is there.
    const client = createClient(MediaService, transport);
    await until("calls take frames", async () => {
      await client.deleteFile({}).catch(() => {});
      return !(requests.at(-1) instanceof IncomingMessage);
    });
    requests.length = 0;
  }
  const owned = stack.move();
  return {
    text: createClient(TextService, transport),
    media: createClient(MediaService, transport),
    origin,
    server,
    sockets,
    requests,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function listenerOf(options: WireOptions, services: RpcService[]): RequestListener {
  const interceptors = [
    serverErrorInterceptor({ log: createLogger("silent"), ids: randomIds }),
    ...(options.serverInterceptors ?? []),
  ];
  const limit = options.maxMessageBytes;
  if (options.server === "our server") {
    const ours = createWireServer({
      services,
      interceptors,
      ...(limit ? { maxMessageBytes: limit } : {}),
    });
    return (req, res) => {
      if (!ours.handler(req, res)) res.writeHead(200, { "content-type": "text/plain" }).end("ops");
    };
  }
  return connectNodeAdapter({
    interceptors,
    ...(limit ? { readMaxBytes: limit } : {}),
    routes(router) {
      for (const { desc, impl } of services) router.service(desc, impl);
    },
  });
}

function transportTo(origin: string, options: WireOptions, stack: AsyncDisposableStack): Transport {
  const interceptors = options.clientInterceptors ?? [];
  const isOurs = options.client.startsWith("our client");
  if (!isOurs) {
    return createConnectTransport({
      baseUrl: origin,
      httpVersion: "1.1",
      useBinaryFormat: options.client !== "the stock client with JSON",
      interceptors,
    });
  }
  const pool = stack.use(singlePeer(origin, { frames: options.client.endsWith("frames") }));
  return createWireTransport({ pool, baseUrl: origin, interceptors });
}

/** A message of a streamed answer. */
export function part(events: string | Uint8Array): StreamGenerateResponse {
  const value = typeof events === "string" ? Buffer.from(events) : events;
  return create(StreamGenerateResponseSchema, { part: { case: "events", value } });
}

/** The texts of a streamed answer. */
export async function read(stream: AsyncIterable<StreamGenerateResponse>): Promise<string[]> {
  const seen: string[] = [];
  for await (const { part } of stream) seen.push(Buffer.from(part.value ?? []).toString());
  return seen;
}

/** The error of a call, which must fail. */
export async function failure(work: Promise<unknown>): Promise<ConnectError> {
  return work.then(
    () => expect.unreachable("it should have failed"),
    (error: unknown) => ConnectError.from(error),
  );
}
