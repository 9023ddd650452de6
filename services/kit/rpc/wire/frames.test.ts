import { once } from "node:events";
import { createServer, IncomingMessage, type RequestListener } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { Code, ConnectError, createClient, type HandlerContext } from "@connectrpc/connect";
import { afterEach, describe, expect, test } from "vitest";
import { whenAborted } from "#kit/base/abort.ts";
import { TextService } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { until } from "../../../../test/support/until.ts";
import { rpcService } from "../service.ts";
import { type CallOutcome, createWireDispatcher, type PeerPool } from "../wire-pool.ts";
import { createWireServer } from "../wire-server.ts";
import { createWireTransport } from "../wire-transport.ts";
import {
  FrameReader,
  frameKinds,
  frameOf,
  framesPath,
  framesProtocol,
  maxFrameBodyBytes,
} from "./frames.ts";
import { FramesDispatcher } from "./frames-client.ts";
import { asksForFrames, serveFrames } from "./frames-server.ts";

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

type Generate = (body: Uint8Array, context: HandlerContext) => Uint8Array | Promise<Uint8Array>;

/** A server of one method, and what it saw. */
async function serve(generate: Generate, isCaller?: (authorization?: string) => boolean) {
  const text = rpcService(TextService, {
    generate: async (request: { body: Uint8Array }, context: HandlerContext) => ({
      body: await generate(request.body, context),
    }),
    async *streamGenerate() {
      yield { part: { case: "events", value: Buffer.from("e") } };
    },
  } as never);
  const wire = createWireServer({ services: [text], interceptors: [] });
  const seen = { http: 0, framed: 0, upgrades: 0, chunks: 0 };
  const sockets = new Set<Socket>();
  const server = createServer({ shouldUpgradeCallback: asksForFrames }, (req, res) => {
    if (req instanceof IncomingMessage) seen.http++;
    else seen.framed++;
    wire.handler(req, res);
  });
  server.prependListener("upgrade", (_, socket: Socket) => {
    seen.upgrades++;
    socket.on("data", () => seen.chunks++);
  });
  const frames = serveFrames(server, isCaller);
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  await listen(server);
  const { port } = server.address() as AddressInfo;
  return { seen, sockets, frames, wire, port, origin: `http://127.0.0.1:${port}` };
}

async function listen(server: ReturnType<typeof createServer>): Promise<void> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const open = new Set<Socket>();
  server.on("connection", (socket) => open.add(socket));
  cleanUps.push(async () => {
    const closed = once(server.close(), "close");
    for (const socket of open) socket.destroy();
    await closed;
  });
}

interface AskOptions {
  signal?: AbortSignal;
  head?: Record<string, string>;
}

/** A caller, and what became of its attempts. */
function callerOf(origin: string) {
  const outcomes: CallOutcome[] = [];
  const told = { going: 0 };
  const dispatcher = new FramesDispatcher(createWireDispatcher(origin), () => told.going++);
  cleanUps.push(() => dispatcher.destroy());
  const pool: PeerPool = {
    pick: () => ({
      dispatcher,
      origin,
      going: () => told.going++,
      done: (outcome) => outcomes.push(outcome),
    }),
  };
  const transport = createWireTransport({ pool, baseUrl: origin });
  const client = createClient(TextService, transport);
  const headers = { authorization: "Bearer t" };
  const ask = (body: Uint8Array | string = "x", { head = {}, ...options }: AskOptions = {}) =>
    client
      .generate({ body: Buffer.from(body) }, { headers: { ...headers, ...head }, ...options })
      .then(({ body }) => body);
  return { ask, outcomes, told, dispatcher };
}

/** A server and its caller, whose calls take frames. */
async function framed(generate: Generate) {
  const server = await serve((body, context) =>
    Buffer.from(body).equals(Buffer.from("first")) ? body : generate(body, context),
  );
  const caller = callerOf(server.origin);
  await until("calls take frames", async () => {
    await caller.ask("first");
    return server.seen.framed > 0;
  });
  Object.assign(server.seen, { http: 0, framed: 0, chunks: 0 });
  caller.outcomes.length = 0;
  return { ...server, ...caller };
}

/** A connection that takes frames, as a plain socket. */
async function rawFrames(port: number): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1" });
  cleanUps.push(() => socket.destroy());
  socket.write(
    `GET ${framesPath} HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: ${framesProtocol}\r\n\r\n`,
  );
  const [reply] = await once(socket, "data");
  expect(String(reply)).toMatch(/^HTTP\/1.1 101 /);
  return socket;
}

const echo: Generate = (body) => body;
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => ConnectError.from(error).code,
  );

describe("calls of one connection", () => {
  test("that begin together travel together, and each gets its own answer", async () => {
    const { ask, seen, sockets } = await framed(echo);
    const open = sockets.size;
    const bodies = Array.from({ length: 100 }, (_, i) => `call ${i}`);
    const answers = await Promise.all(bodies.map((body) => ask(body)));
    expect(answers.map((answer) => Buffer.from(answer).toString())).toEqual(bodies);
    expect(seen).toMatchObject({ http: 0, framed: 100 });
    expect(seen.chunks).toBeLessThan(10);
    expect(sockets.size).toBe(open);
  });

  test("answers in any order", async () => {
    const first = Promise.withResolvers<Uint8Array>();
    const { ask } = await framed((body) => (body.length === 1 ? first.promise : body));
    const slow = ask("1");
    expect(Buffer.from(await ask("22")).toString()).toBe("22");
    first.resolve(Buffer.from("late"));
    expect(Buffer.from(await slow).toString()).toBe("late");
  });

  test("a long request takes HTTP, and a long answer comes in parts that others pass", async () => {
    const long = Buffer.alloc(8 * 1024 * 1024, "long ");
    const { ask, seen } = await framed((body) => (body.length === 1 ? long : body));
    const order: string[] = [];
    const slow = ask("1").then((answer) => {
      order.push("long");
      return answer;
    });
    await ask("22").then(() => order.push("short"));
    expect(Buffer.compare(Buffer.from(await slow), long)).toBe(0);
    expect(order).toEqual(["short", "long"]);
    expect(seen).toMatchObject({ http: 0, framed: 2 });
    const request = Buffer.alloc(maxFrameBodyBytes + 1, "r");
    expect(Buffer.compare(Buffer.from(await ask(request)), request)).toBe(0);
    expect(seen).toMatchObject({ http: 1, framed: 2 });
  });

  test("above the bound of one connection take HTTP", async () => {
    const held = Promise.withResolvers<void>();
    const { ask, seen } = await framed(async (body) => {
      await held.promise;
      return body;
    });
    const asked = Array.from({ length: 300 }, () => ask());
    await until("all have come", () => seen.http + seen.framed === 300);
    expect(seen).toMatchObject({ framed: 256, http: 44 });
    held.resolve();
    await Promise.all(asked);
  });
});

describe("an end", () => {
  test("a caller that leaves ends its own call alone", async () => {
    const left = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const { ask, wire } = await framed(async (body, { signal }) => {
      if (body.length === 1) {
        begun.resolve();
        await whenAborted(signal);
        left.resolve();
      } else await held.promise;
      return body;
    });
    const stop = new AbortController();
    const gone = codeOf(ask("1", { signal: stop.signal }));
    const other = ask("22");
    await begun.promise;
    stop.abort();
    await left.promise;
    expect(await gone).toBe(Code.Canceled);
    held.resolve();
    expect(Buffer.from(await other).toString()).toBe("22");
    await until("no call is open", () => wire.openCalls === 0);
  });

  test("a connection that breaks fails its calls, and the next ones find another", async () => {
    const { ask, sockets, outcomes, seen, wire } = await framed((_, { signal }) =>
      whenAborted(signal).then(() => Buffer.alloc(0)),
    );
    const asked = [codeOf(ask("1")), codeOf(ask("2"))];
    await until("both have come", () => seen.framed === 2);
    for (const socket of sockets) socket.resetAndDestroy();
    expect(await Promise.all(asked)).toEqual([Code.Unavailable, Code.Unavailable]);
    expect(outcomes).toEqual(["failed", "failed"]);
    await until("no call is open", () => wire.openCalls === 0);
    await until("calls take frames again", async () => {
      await ask("first");
      return seen.framed > 2;
    });
    expect(seen.upgrades).toBe(2);
  });

  test("a server that stops sends callers away; what is under way is answered", async () => {
    const held = Promise.withResolvers<void>();
    const { ask, seen, frames, told, sockets } = await framed(async (body) => {
      await held.promise;
      return body;
    });
    const asked = ask("22");
    await until("it has come", () => seen.framed === 1);
    frames.sendAway();
    await until("the caller knows", () => told.going === 1);
    expect(Buffer.from(await ask("first")).toString()).toBe("first");
    expect(seen).toMatchObject({ framed: 1, http: 1, upgrades: 2 });
    held.resolve();
    expect(Buffer.from(await asked).toString()).toBe("22");
    await until("the connection of frames is closed", () => sockets.size <= 2);
  });

  test("a dispatcher that closes answers what is under way, then closes the connection", async () => {
    const held = Promise.withResolvers<void>();
    const { ask, seen, dispatcher, sockets } = await framed(async (body) => {
      await held.promise;
      return body;
    });
    const asked = ask("22");
    await until("it has come", () => seen.framed === 1);
    const closed = dispatcher.close();
    held.resolve();
    expect(Buffer.from(await asked).toString()).toBe("22");
    await closed;
    await until("all are closed", () => sockets.size === 0);
  });

  test("a dispatcher that is destroyed while it closes ends what is under way", async () => {
    const { ask, seen, dispatcher, sockets } = await framed((_, { signal }) =>
      whenAborted(signal).then(() => Buffer.alloc(0)),
    );
    const asked = codeOf(ask("22"));
    await until("it has come", () => seen.framed === 1);
    const closed = dispatcher.close();
    await dispatcher.destroy();
    expect(await asked).toBe(Code.Unavailable);
    await closed;
    await until("all are closed", () => sockets.size === 0);
  });
});

describe("a head that is too long", () => {
  test("of a request takes HTTP, where it is refused, and ends no other call", async () => {
    const held = Promise.withResolvers<void>();
    const { ask, seen } = await framed(async (body) => {
      await held.promise;
      return body;
    });
    const other = ask("22");
    await until("it has come", () => seen.framed === 1);
    const head = { long: "h".repeat(100_000) };
    expect(await codeOf(ask("1", { head }))).toBeDefined();
    held.resolve();
    expect(Buffer.from(await other).toString()).toBe("22");
    expect(seen.framed).toBe(1);
  });

  test("of an answer fails its own call alone", async () => {
    const held = Promise.withResolvers<void>();
    const { ask, wire } = await framed(async (body, { responseHeader }) => {
      if (body.length === 1) responseHeader.set("long", "h".repeat(100_000));
      else await held.promise;
      return body;
    });
    const other = ask("22");
    expect(await codeOf(ask("1"))).toBe(Code.Unavailable);
    held.resolve();
    expect(Buffer.from(await other).toString()).toBe("22");
    await until("no call is open", () => wire.openCalls === 0);
  });
});

test("a stream in a frame is refused: its answer would need more than one", async () => {
  const { port, wire } = await serve(echo);
  const socket = await rawFrames(port);
  const heads: string[] = [];
  const reader = new FrameReader(({ head }) => heads.push(head));
  socket.on("data", (chunk) => reader.push(chunk));
  const path = "/genmesh.text.v1.TextService/StreamGenerate";
  const head = `${path}\ncontent-type\napplication/connect+proto`;
  socket.write(frameOf(frameKinds.request, 1, head, Buffer.alloc(5)));
  await until("it is answered", () => heads.length > 0);
  expect(heads).toEqual(["415"]);
  expect(wire.openCalls).toBe(0);
});

describe("what is no frames", () => {
  test("a peer that does not know them is asked once, and all calls take HTTP", async () => {
    let asked = 0;
    const wire = createWireServer({
      services: [
        rpcService(TextService, { generate: () => ({ body: Buffer.from("y") }) } as never),
      ],
      interceptors: [],
    });
    const listener: RequestListener = (req, res) => {
      if (req.url === framesPath) asked++;
      if (!wire.handler(req, res)) res.writeHead(404).end();
    };
    const server = createServer(listener);
    await listen(server);
    const { ask } = callerOf(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    for (let i = 0; i < 5; i++) expect(Buffer.from(await ask()).toString()).toBe("y");
    await Promise.all([ask(), ask()]);
    expect(asked).toBe(1);
  });

  test("a caller without a token gets no connection, and its calls are judged as before", async () => {
    const { origin, seen } = await serve(echo, (authorization) => authorization === "Bearer other");
    const { ask } = callerOf(origin);
    for (let i = 0; i < 3; i++) await ask();
    await until("it has asked", () => seen.upgrades === 1);
    await ask();
    expect(seen).toMatchObject({ framed: 0, http: 4 });
  });

  test.each([
    ["too long", frameOf(1, 1, "", Buffer.alloc(200_000))],
    ["a head beyond its end", Buffer.from([12, 0, 0, 0, 1, 0, 0, 0, 1, 255, 255, 0, 0, 1, 2, 3])],
  ])("%s: the connection is closed", async (_, bytes) => {
    const { port } = await serve(echo);
    const socket = await rawFrames(port);
    const closed = new Promise((resolve) => socket.once("close", resolve));
    // The server has not read all of it.
    socket.on("error", () => {});
    socket.resume().write(bytes);
    await closed;
  });

  test("another wish to change the protocol is a plain request", async () => {
    const { port } = await serve(echo);
    const socket = connect({ port, host: "127.0.0.1" });
    cleanUps.push(() => socket.destroy());
    socket.write(
      "POST /genmesh.text.v1.TextService/No HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: h2c\r\ncontent-length: 0\r\n\r\n",
    );
    const [reply] = await once(socket, "data");
    expect(String(reply)).toMatch(/^HTTP\/1.1 404 /);
  });
});
