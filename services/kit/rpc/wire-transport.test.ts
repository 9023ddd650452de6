import { createServer, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo, Server } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createAsyncIterable } from "@connectrpc/connect/protocol";
import { afterEach, describe, expect, test } from "vitest";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import { Health, HealthCheckResponseSchema } from "#proto/grpc/health/v1/health_pb.ts";
import { freePort } from "../../../test/support/free-port.ts";
import { untilStill } from "../../../test/support/until.ts";
import { refusingTransport } from "./refusing-transport.ts";
import { prefixOf } from "./wire/envelope.ts";
import { refuseNotStarted } from "./wire/not-started.ts";
import { createWireDispatcher, type PeerPool, singlePeer } from "./wire-pool.ts";
import { createWireTransport } from "./wire-transport.ts";

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const open = new Set<{ destroy(): void }>();
  server.on("connection", (socket) => open.add(socket));
  cleanUps.push(async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of open) socket.destroy();
    await closed;
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function http(listener: RequestListener): Promise<string> {
  return listening(createServer(listener));
}

/** An address at which no server listens. */
async function deadOrigin(): Promise<string> {
  return `http://127.0.0.1:${await freePort()}`;
}

/** Offers the origins in turn, those first that were not tried. Notes how each attempt ended. */
function poolOf(...origins: string[]) {
  const outcomes: string[] = [];
  const dispatchers = new Map(origins.map((origin) => [origin, createWireDispatcher(origin)]));
  cleanUps.push(() => Promise.all([...dispatchers.values()].map((one) => one.destroy())));
  const pool: PeerPool = {
    pick(tried) {
      const origin = origins.find((one) => !tried.includes(one)) ?? origins[0];
      const dispatcher = origin && dispatchers.get(origin);
      if (!dispatcher) return undefined;
      const index = origins.indexOf(origin);
      return {
        dispatcher,
        origin,
        going: () => outcomes.push(`${index} going`),
        done: (outcome) => outcomes.push(`${index} ${outcome}`),
      };
    },
  };
  return { outcomes, pool };
}

function health(pool: PeerPool, options: { idempotent?: boolean; maxMessageBytes?: number } = {}) {
  const { idempotent, ...rest } = options;
  const transport = createWireTransport({ pool, baseUrl: "http://peer", ...rest });
  return createClient(idempotent ? idempotentHealth() : Health, transport);
}

/** The same service with its methods marked as idempotent. */
function idempotentHealth(): typeof Health {
  const method = Object.fromEntries(
    Object.entries(Health.method).map(([name, one]) => [name, { ...one, idempotency: 2 }]),
  );
  return { ...Health, method, methods: Object.values(method) } as unknown as typeof Health;
}

async function failure(work: Promise<unknown>): Promise<ConnectError> {
  return work.then(
    () => expect.unreachable("it should have failed"),
    (error: unknown) => ConnectError.from(error),
  );
}

const serving = Buffer.from(
  toBinary(HealthCheckResponseSchema, create(HealthCheckResponseSchema, { status: 1 })),
);

function answerWell(res: ServerResponse): void {
  res.writeHead(200, { "content-type": "application/proto" }).end(serving);
}

async function drain<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const seen: T[] = [];
  for await (const one of stream) seen.push(one);
  return seen;
}

describe("trying again", () => {
  test("a call that reached no server goes to another address", async () => {
    const alive = await http((_, res) => answerWell(res));
    const { pool, outcomes } = poolOf(await deadOrigin(), alive);
    expect((await health(pool).check({})).status).toBe(1);
    expect(outcomes).toEqual(["0 unreachable", "1 ok"]);
  });

  test("an affinity is the pool's to know, at each attempt, and goes no further", async () => {
    const seen: (string | undefined)[] = [];
    const alive = await http((req, res) => {
      expect(req.headers).not.toHaveProperty("genmesh-affinity");
      answerWell(res);
    });
    const { pool } = poolOf(await deadOrigin(), alive);
    const noting: PeerPool = {
      pick(tried, affinity) {
        seen.push(affinity);
        return pool.pick(tried);
      },
    };
    await health(noting).check({}, { headers: { "genmesh-affinity": "a" } });
    await health(noting).check({});
    expect(seen.slice(0, 2)).toEqual(["a", "a"]);
    expect(seen.at(-1)).toBeUndefined();
  });

  test("a stream and an upload that reached no server do so too", async () => {
    const alive = await http((req, res) => {
      req.resume().on("end", () => {
        res.writeHead(200, { "content-type": "application/connect+proto" });
        res.end(Buffer.concat([prefixOf(2, 2), Buffer.from("{}")]));
      });
    });
    const { pool, outcomes } = poolOf(await deadOrigin(), alive);
    expect(await drain(health(pool).watch({}))).toEqual([]);
    expect(outcomes).toEqual(["0 unreachable", "1 ok"]);
  });

  test("an address that takes no connection is not asked twice", async () => {
    const { pool, outcomes } = poolOf(await deadOrigin());
    const error = await failure(health(pool, { idempotent: true }).check({}));
    expect(error.code).toBe(Code.Unavailable);
    expect(outcomes).toEqual(["0 unreachable", "0 unreachable"]);
  });

  test("no more than three addresses of which each may have heard of it", async () => {
    const broken = () => http((req) => req.socket.resetAndDestroy());
    const { pool, outcomes } = poolOf(
      await deadOrigin(),
      ...(await Promise.all([1, 2, 3, 4].map(broken))),
    );
    const error = await failure(health(pool, { idempotent: true }).check({}));
    expect(error.code).toBe(Code.Unavailable);
    expect(outcomes).toEqual(["0 unreachable", "1 failed", "2 failed", "3 failed"]);
  });

  test("no more than eight that take no connection, and eight after addresses were looked for anew", async () => {
    const dead = await Promise.all(Array.from({ length: 18 }, deadOrigin));
    const { pool, outcomes } = poolOf(...dead);
    expect((await failure(health(pool).check({}))).code).toBe(Code.Unavailable);
    expect(outcomes).toEqual([0, 1, 2, 3, 4, 5, 6, 7].map((nth) => `${nth} unreachable`));
    let looks = 0;
    const looking: PeerPool = {
      pick: pool.pick,
      async lookAgain() {
        looks++;
      },
    };
    outcomes.length = 0;
    expect((await failure(health(looking).check({}))).code).toBe(Code.Unavailable);
    expect([outcomes.length, looks]).toEqual([16, 1]);
  });

  test("where none takes a connection addresses are looked for anew, once", async () => {
    const alive = await http((_, res) => answerWell(res));
    let now = poolOf(await deadOrigin()).pool;
    let looks = 0;
    const pool: PeerPool = {
      pick: (tried, affinity) => now.pick(tried, affinity),
      async lookAgain() {
        looks++;
        now = looks === 1 ? poolOf(alive).pool : now;
      },
    };
    expect((await health(pool).check({})).status).toBe(1);
    now = poolOf(await deadOrigin()).pool;
    expect((await failure(health(pool).check({}))).code).toBe(Code.Unavailable);
    expect(looks).toBe(2);
  });

  test("what may have been carried out is sent again only where the method allows it", async () => {
    const broken = await http((req) => req.socket.resetAndDestroy());
    const alive = await http((_, res) => answerWell(res));
    const first = poolOf(broken, alive);
    expect((await failure(health(first.pool).check({}))).code).toBe(Code.Unavailable);
    expect(first.outcomes).toEqual(["0 failed"]);
    const second = poolOf(broken, alive);
    expect((await health(second.pool, { idempotent: true }).check({})).status).toBe(1);
    expect(second.outcomes).toEqual(["0 failed", "1 ok"]);
  });

  test("a process that has not started yet did nothing: any call goes to another address", async () => {
    const starting = await http(refuseNotStarted);
    const alive = await http((_, res) => answerWell(res));
    const { pool, outcomes } = poolOf(starting, alive);
    expect((await health(pool).check({})).status).toBe(1);
    expect(outcomes).toEqual(["0 unreachable", "1 ok"]);
    expect((await failure(health(poolOf(starting).pool).check({}))).code).toBe(Code.Unavailable);
  });

  test("an answer that broke off is not asked for again", async () => {
    let asked = 0;
    const cut = await http((req, res) => {
      asked++;
      res.writeHead(200, { "content-type": "application/proto", "content-length": "100" });
      res.write("x", () => req.socket.destroy());
    });
    const { pool } = poolOf(cut, cut);
    expect((await failure(health(pool, { idempotent: true }).check({}))).code).toBe(
      Code.Unavailable,
    );
    expect(asked).toBe(1);
  });

  test("an answer that says Unavailable stands", async () => {
    let asked = 0;
    const busy = await http((_, res) => {
      asked++;
      res.writeHead(503, { "content-type": "application/json" }).end('{"code":"unavailable"}');
    });
    const { pool, outcomes } = poolOf(busy);
    const error = await failure(health(pool, { idempotent: true }).check({}));
    expect([error.code, asked, outcomes]).toEqual([Code.Unavailable, 1, ["0 ok"]]);
  });

  test.each<[string, PeerPool]>([
    ["no address", { pick: () => undefined }],
    ["a look-up that fails", { pick: () => Promise.reject(new Error("ENOTFOUND")) }],
  ])("%s is Unavailable", async (_, pool) => {
    expect((await failure(health(pool).check({}))).code).toBe(Code.Unavailable);
  });

  test("a deadline also holds while an address is looked up, which is then given back", async () => {
    const found = Promise.withResolvers<never>();
    const outcomes: string[] = [];
    const pool: PeerPool = { pick: () => found.promise };
    const error = await failure(health(pool).check({}, { timeoutMs: 10 }));
    expect(error.code).toBe(Code.DeadlineExceeded);
    found.resolve({ done: (one: string) => outcomes.push(one) } as never);
    await found.promise;
    await Promise.resolve();
    expect(outcomes).toEqual(["ok"]);
  });

  test("a deadline without an answer counts against the address, a caller's leaving does not", async () => {
    const silent = await http(() => {});
    const { pool, outcomes } = poolOf(silent);
    await failure(health(pool).check({}, { timeoutMs: 20 }));
    const caller = new AbortController();
    const failing = failure(health(pool).check({}, { signal: caller.signal }));
    caller.abort();
    expect((await failing).code).toBe(Code.Canceled);
    expect(outcomes).toEqual(["0 failed", "0 ok"]);
  });
});

describe("answers that are none", () => {
  test.each([
    ["a proxy's page", 502, { "content-type": "text/html" }, "<html>", Code.Unavailable],
    ["a bare 404", 404, {}, "", Code.Unimplemented],
    ["an error that is not JSON", 500, { "content-type": "application/json" }, "{", Code.Unknown],
    ["another content type", 200, { "content-type": "text/plain" }, "x", Code.Unknown],
    ["JSON", 200, { "content-type": "application/json" }, "{}", Code.Internal],
    [
      "compression",
      200,
      { "content-type": "application/proto", "content-encoding": "gzip" },
      "x",
      Code.Internal,
    ],
    ["a bad message", 200, { "content-type": "application/proto" }, "\xff\xff", Code.Internal],
    [
      "a large message",
      200,
      { "content-type": "application/proto" },
      "x".repeat(1001),
      Code.ResourceExhausted,
    ],
  ])("%s", async (_, status, headers, body, code) => {
    const origin = await http((_req, res) => res.writeHead(status, headers as never).end(body));
    const { pool } = poolOf(origin);
    const error = await failure(health(pool, { maxMessageBytes: 1000 }).check({}));
    expect(error.code).toBe(code);
  });

  test.each([
    ["no end", Buffer.concat([prefixOf(0, serving.length), serving]), Code.Internal],
    ["an end inside a message", prefixOf(0, 10), Code.Internal],
    ["a large message", prefixOf(0, 1001), Code.ResourceExhausted],
    ["an end that is not JSON", Buffer.concat([prefixOf(2, 1), Buffer.from("{")]), Code.Unknown],
    ["compression", prefixOf(1, 0), Code.Internal],
  ])("a stream with %s", async (_, body, code) => {
    const headers = { "content-type": "application/connect+proto" };
    const origin = await http((_req, res) => res.writeHead(200, headers).end(body));
    const { pool } = poolOf(origin);
    const error = await failure(drain(health(pool, { maxMessageBytes: 1000 }).watch({})));
    expect(error.code).toBe(code);
  });

  test("a stream's answer that is a page", async () => {
    const origin = await http((_, res) => res.writeHead(503).end("away"));
    const error = await failure(drain(health(poolOf(origin).pool).watch({})));
    expect(error.code).toBe(Code.Unavailable);
  });
});

describe("a stream", () => {
  /** Sends messages as fast as they are taken. Resolves when the client has left. */
  function endless() {
    const left = Promise.withResolvers<void>();
    let sent = 0;
    const chunk = Buffer.concat(
      Array.from({ length: 1000 }, () => Buffer.concat([prefixOf(0, serving.length), serving])),
    );
    const origin = http((_, res) => {
      res.writeHead(200, { "content-type": "application/connect+proto" });
      const go = () => {
        do sent += chunk.length;
        while (res.write(chunk));
      };
      res.on("drain", go).on("close", () => left.resolve());
      go();
    });
    return { origin, left: left.promise, sent: () => sent };
  }

  test("that is left early closes its connection", async () => {
    const server = endless();
    const { pool, outcomes } = poolOf(await server.origin);
    const transport = createWireTransport({ pool, baseUrl: "http://peer" });
    const response = await transport.stream(
      Health.method.watch,
      undefined,
      undefined,
      undefined,
      createAsyncIterable([{}]),
    );
    for await (const { status } of response.message) {
      expect(status).toBe(1);
      break;
    }
    await server.left;
    expect(outcomes).toEqual(["0 ok"]);
  });

  test("that its receiver does not read holds its sender back", async () => {
    const server = endless();
    const caller = new AbortController();
    const { pool } = poolOf(await server.origin);
    const it = health(pool).watch({}, { signal: caller.signal })[Symbol.asyncIterator]();
    await it.next();
    const still = await untilStill("the sender", server.sent);
    // As many bytes as the kernel's buffers hold, and not an endless number.
    expect(still).toBeLessThan(32 * 1024 * 1024);
    while (server.sent() === still) await it.next();
    caller.abort();
    await server.left;
  });
});

test("what the sender of a stream throws is the call's error", async () => {
  const origin = await http((req) => req.resume());
  const pool = singlePeer(origin);
  cleanUps.push(() => pool[Symbol.asyncDispose]());
  const transport = refusingTransport(createWireTransport({ pool, baseUrl: origin }));
  const method = { ...Health.method.check, methodKind: "client_streaming" } as never;
  async function* messages() {
    yield {};
    throw new RefusalError(ErrorReason.UPLOAD_QUOTA_EXCEEDED);
  }
  await expect(
    transport.stream(method, undefined, undefined, undefined, messages() as never),
  ).rejects.toMatchObject({ reason: ErrorReason.UPLOAD_QUOTA_EXCEEDED });
});
