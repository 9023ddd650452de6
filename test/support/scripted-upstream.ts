import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { freePort } from "./free-port.ts";
import { answer, wasCutHere } from "./scripted-answers.ts";
import type { Behaviour } from "./scripted-behaviours.ts";

export type { Behaviour } from "./scripted-behaviours.ts";

/** The upstream's record of one request. */
export interface SeenRequest {
  method: string;
  /** Without the query. */
  path: string;
  query: URLSearchParams;
  headers: IncomingMessage["headers"];
  /** The parsed JSON body. Undefined where the body is no JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into bodies of many shapes.
  body: any;
  /** The body's bytes, unchanged. */
  raw: Buffer;
  /** `performance.now()` when the body had arrived. */
  atMs: number;
  /** Did the caller close the connection before the answer's end? */
  aborted: boolean;
  /** Bytes written to the socket's buffer so far. */
  writtenBytes: number;
  /** Resolves when the exchange has ended on either side. */
  over: Promise<void>;
  /** The number of its connection, counted from 1. */
  connection: number;
}

/** Chooses an answer by the request. */
export type Script = (seen: SeenRequest) => Behaviour;

/** An OpenAI-compatible server that records its requests and misbehaves on demand. */
export interface ScriptedUpstream extends AsyncDisposable {
  /** Ends in /v1. */
  baseUrl: string;
  /** In the order of arrival. */
  requests: SeenRequest[];
  /** The behaviour for every request until the next call. At first: `{kind: "ok"}`. */
  script(behaviour: Behaviour | Script): void;
  /** The behaviours for the next requests, one each, before the script applies again. */
  next(...behaviours: Behaviour[]): void;
  /** Resolves with the `n`th request (from 1) once it has arrived. */
  request(n: number): Promise<SeenRequest>;
  /** Connections that are open now. */
  openConnections(): number;
  /** Stops listening and destroys every connection. */
  close(): Promise<void>;
}

/** Its port (default: a free loopback port), and a handler of upgrades, for example to WebSockets. */
export interface UpstreamOptions {
  port?: number;
  onUpgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
}

export async function startScriptedUpstream({
  port = 0,
  onUpgrade,
}: UpstreamOptions = {}): Promise<ScriptedUpstream> {
  const requests: SeenRequest[] = [];
  const queued: Behaviour[] = [];
  const sockets = new Map<Socket, number>();
  let connections = 0;
  let script: Script = () => ({ kind: "ok" });
  let waiting: { n: number; resolve: (seen: SeenRequest) => void }[] = [];

  const server = createServer(async (request, response) => {
    const seen = await record(request, response, sockets.get(request.socket) ?? 0);
    requests.push(seen);
    const come = waiting.filter(({ n }) => n <= requests.length);
    waiting = waiting.filter(({ n }) => n > requests.length);
    for (const { n, resolve } of come) resolve(requests[n - 1] as SeenRequest);
    await answer(queued.shift() ?? script(seen), seen, response);
  });
  // Node's own timer is off, because tests decide when a request hangs.
  server.keepAliveTimeout = 0;
  server.on("connection", (socket) => {
    sockets.set(socket, ++connections);
    socket.on("close", () => sockets.delete(socket));
  });
  if (onUpgrade) server.on("upgrade", onUpgrade);
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));

  const close = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of sockets.keys()) socket.destroy();
    await closed;
  };
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    script: (next) => {
      script = typeof next === "function" ? next : () => next;
    },
    next: (...behaviours) => {
      queued.push(...behaviours);
    },
    request: (n) =>
      new Promise((resolve) => {
        const seen = requests[n - 1];
        if (seen) resolve(seen);
        else waiting.push({ n, resolve });
      }),
    openConnections: () => sockets.size,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** A base URL that refuses connections. No program listens on its port, and the system gives it to no server. */
export async function closedBaseUrl(): Promise<string> {
  return `http://127.0.0.1:${await freePort()}/v1`;
}

async function record(
  request: IncomingMessage,
  response: ServerResponse,
  connection: number,
): Promise<SeenRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const raw = Buffer.concat(chunks);
  const url = new URL(request.url ?? "/", "http://upstream");
  const seen: SeenRequest = {
    method: request.method ?? "",
    path: url.pathname,
    query: url.searchParams,
    headers: request.headers,
    body: parsed(raw),
    raw,
    atMs: performance.now(),
    aborted: false,
    writtenBytes: 0,
    connection,
    over: new Promise((resolve) => {
      response.on("close", () => {
        if (!response.writableFinished && !wasCutHere(response)) seen.aborted = true;
        resolve();
      });
    }),
  };
  return seen;
}

function parsed(raw: Buffer): unknown {
  try {
    return JSON.parse(raw.toString());
  } catch {
    return undefined;
  }
}
