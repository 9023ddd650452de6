import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { afterAll, describe, expect, test } from "vitest";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { type CallerSocket, openSocket, refusedSocket } from "../support/caller-socket.ts";
import { until } from "../support/until.ts";
import { exchange } from "./raw.ts";
import { event, scriptText } from "./scripted-text.ts";
import { startEdge } from "./world.ts";

const portOf = (app: Pick<FastifyInstance, "server">) => (app.server.address() as AddressInfo).port;

const { port, asked, begun } = scriptText();
const stop = new AbortController();
const edge = await startEdge({ port, cutOff: stop.signal });
afterAll(() => edge[Symbol.asyncDispose]());
const base = `http://127.0.0.1:${edge.port}/v1`;
const bearer = { authorization: `Bearer ${edge.key}` };
describe("a handshake", () => {
  test.each<[string, Record<string, string>, number, string]>([
    ["without a key", {}, 401, "invalid_api_key"],
    ["with an unknown key", { authorization: `Bearer ${"x".repeat(32)}` }, 401, "invalid_api_key"],
    [
      "with an Idempotency-Key",
      { ...bearer, "idempotency-key": "a" },
      400,
      "invalid_idempotency_key",
    ],
  ])("%s is refused over plain HTTP", async (_, headers, status, code) => {
    const answer = await refusedSocket(base, headers);
    expect(answer).toMatchObject({ status, body: { error: { code } } });
    expect(answer.headers).toMatchObject({
      connection: "close",
      "x-request-id": expect.stringMatching(/^req_/),
    });
  });

  test("of another version is refused", async () => {
    const lines = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 8"];
    const head = ["GET /v1/responses HTTP/1.1", "Host: a", `Authorization: Bearer ${edge.key}`];
    const answer = await exchange(edge.port, [...head, ...lines, "", ""].join("\r\n"));
    expect(answer.status).toBe(400);
  });

  test("of a key without the right is refused", async () => {
    const key = await edge.makeKey({ scopes: [3] });
    const answer = await refusedSocket(base, { authorization: `Bearer ${key}` });
    expect(answer).toMatchObject({ status: 403, body: { error: { code: "permission_denied" } } });
  });

  test("is answered with an id, and logged as a request that is over", async () => {
    using socket = await openSocket(base, edge.key);
    await until("its line is in the log", () =>
      edge.log.some(({ route, status }) => route === "/v1/responses" && status === 101),
    );
    expect(socket.ws.protocol).toBe("");
    expect(socket.ws.extensions).toBe("");
  });

  test("is refused beyond 64 sockets of a key", async () => {
    const key = await edge.makeKey({});
    const sockets = await Promise.all(Array.from({ length: 64 }, () => openSocket(base, key)));
    const answer = await refusedSocket(base, { authorization: `Bearer ${key}` });
    expect(answer).toMatchObject({ status: 429, body: { error: { code: "rate_limit_exceeded" } } });
    expect(answer.headers["retry-after"]).toBeDefined();
    for (const { ws } of sockets) ws.close();
    await Promise.all(sockets.map(({ closed }) => closed));
  });
});

describe("a request on a socket", () => {
  test("reaches the text service as POST /responses with stream does", async () => {
    using socket = await openSocket(base, edge.key);
    const one = await begun(socket, { stream: false, instructions: "Be kind." });
    expect(one.request.operation).toBe(Operation.RESPONSES);
    expect(one.request.admission).toMatchObject({ allowedModels: [] });
    expect(one.body).toEqual({
      ...{ model: "chat-1", instructions: "Be kind.", stream: true },
      input: [{ role: "user", content: "Hi" }],
    });
    one.say(`: keep-alive\n${event("response.created", { response: {} })}`);
    one.finish();
    expect(await socket.turn()).toEqual([
      { type: "response.created", response: {} },
      {
        ...{ type: "response.completed", response: expect.objectContaining({ output: [] }) },
        headers: {
          "x-request-id": expect.stringMatching(/^req_/),
          "x-genmesh-cost-usd-micros": "7",
          "x-genmesh-ignored-parameters": "seed",
        },
      },
    ]);
    expect(edge.log).toContainEqual(
      expect.objectContaining({ method: "WEBSOCKET", route: "/v1/responses", status: 200 }),
    );
  });

  test("is answered with every character that a text may have", async () => {
    using socket = await openSocket(base, edge.key);
    const one = await begun(socket);
    const text = "a\u2028b\u2029c\u0085\r\n";
    one.say(event("response.output_text.delta", { delta: text }));
    one.finish([{ type: "message", content: text }]);
    expect(await socket.turn()).toMatchObject([
      { delta: text },
      { type: "response.completed", response: { output: [{ content: text }] } },
    ]);
  });

  test("is answered with what was paid for, also where it cannot be continued", async () => {
    using socket = await openSocket(base, edge.key);
    const one = await begun(socket);
    one.finish([{ type: "message", content: "x".repeat(9 * 1024 * 1024) }]);
    const end = (await socket.turn()).at(-1);
    expect(end?.type).toBe("response.completed");
    const [frame] = await socket.create({ input: "y", previous_response_id: end?.response?.id });
    expect(frame?.error?.code).toBe("previous_response_not_found");
  });

  test("that continues another has its input, its output and what is new", async () => {
    using socket = await openSocket(base, edge.key);
    const call = { type: "function_call", call_id: "call_1", name: "f", arguments: "{}" };
    (await begun(socket)).finish([call]);
    const id = (await socket.turn()).at(-1)?.response?.id;
    const output = { type: "function_call_output", call_id: "call_1", output: "1" };
    const two = await begun(socket, { input: [output], previous_response_id: id });
    expect(two.body.input).toEqual([{ role: "user", content: "Hi" }, call, output]);
    expect(two.body).not.toHaveProperty("previous_response_id");
    two.finish();
    await socket.turn();
  });

  test("waits for the one before it, and lanes take turns", async () => {
    using socket = await openSocket(base, edge.key);
    const first = await begun(socket, { stream_id: "a", input: "a1" });
    const count = asked.length;
    for (const [stream_id, input] of [
      ["a", "a2"],
      ["a", "a3"],
      ["b", "b1"],
    ]) {
      socket.send({ type: "response.create", model: "chat-1", stream_id, input });
    }
    socket.ws.ping();
    await new Promise((resolve) => socket.ws.once("pong", resolve));
    expect(asked).toHaveLength(count);
    first.finish();
    const lanes: unknown[] = [(await socket.turn()).at(-1)?.stream_id];
    for (const at of [0, 1, 2]) {
      const next = await until("the next is asked", () => asked[count + at]);
      next?.finish();
      lanes.push((await socket.turn()).at(-1)?.stream_id);
    }
    expect(lanes).toEqual(["a", "a", "b", "a"]);
  });

  test.each<[string, unknown, string, string | null]>([
    ["is no JSON", "{", "invalid_json", null],
    ["is of another type", { type: "response.steer" }, "unsupported_parameter", "type"],
    [
      "names a lane badly",
      { type: "response.create", stream_id: "a b" },
      "invalid_stream_id",
      "stream_id",
    ],
    ["has no type", { model: "chat-1" }, "missing_required_parameter", "type"],
  ])("that %s is refused, and the socket stays", async (_, message, code, param) => {
    using socket = await openSocket(base, edge.key);
    socket.send(message);
    const [frame] = await socket.turn();
    expect(frame).toMatchObject({ type: "error", status: 400, error: { code, param } });
    expect(frame?.headers?.["x-request-id"]).toMatch(/^req_/);
    (await begun(socket)).finish();
    expect((await socket.turn()).at(-1)?.type).toBe("response.completed");
  });

  test("is refused where 32 wait", async () => {
    using socket = await openSocket(base, edge.key);
    const first = await begun(socket);
    for (let at = 0; at < 33; at++) {
      socket.send({ type: "response.create", model: "chat-1", input: "x" });
    }
    const [frame] = await socket.turn();
    expect(frame).toMatchObject({
      status: 429,
      error: { code: "websocket_stream_limit_reached" },
      headers: { "retry-after": "1" },
    });
    expect(first.signal.aborted).toBe(false);
  });

  test("is given up where its caller leaves", async () => {
    using socket = await openSocket(base, edge.key);
    const one = await begun(socket);
    socket.ws.terminate();
    await until("the call is aborted", () => one.signal.aborted);
    await until("it is logged as left", () =>
      edge.log.some(({ method, status }) => method === "WEBSOCKET" && status === 499),
    );
  });

  test("above the rate is an error with the time to wait", async () => {
    const key = await edge.makeKey({ requestsPerMinute: 1 });
    using socket = await openSocket(base, key);
    const [frame] = await socket.create({ input: "x" });
    expect(frame).toMatchObject({ status: 429, error: { code: "rate_limit_exceeded" } });
    expect(Number(frame?.headers?.["retry-after"])).toBeGreaterThan(0);
  });
});

describe("a socket closes", () => {
  test("where its caller takes nothing for a minute, and says that it lives", async () => {
    using socket = await openSocket(base, edge.key);
    const one = await begun(socket);
    socket.ws.pause();
    const delta = "x".repeat(60_000);
    for (let at = 0; at < 300; at++) one.say(event("response.output_text.delta", { delta }));
    // Nothing tells that the buffers of both ends are full. Where they are not yet, the steps below show it.
    await new Promise((resolve) => setTimeout(resolve, 300));
    for (let at = 0; at < 6 && !one.signal.aborted; at++) {
      socket.ws.pong();
      // A pong has no answer that could be awaited.
      await new Promise((resolve) => setTimeout(resolve, 30));
      await edge.clock.advance(15_000);
    }
    await until("the call is aborted", () => one.signal.aborted);
  });

  test("with 1008 where many more messages come than may wait", async () => {
    using socket = await openSocket(base, edge.key);
    await begun(socket);
    for (let at = 0; at < 100; at++) socket.send("{}");
    expect(await socket.closed).toBe(1008);
    expect(socket.frames).toHaveLength(32);
  });

  test("with 1003 at a binary frame", async () => {
    using socket = await openSocket(base, edge.key);
    socket.ws.send(Buffer.from("{}"));
    const count = asked.length;
    socket.send({ type: "response.create", model: "chat-1", input: "It comes too late." });
    expect(await socket.closed).toBe(1003);
    expect(asked).toHaveLength(count);
  });

  test("for a newcomer only where nothing is under way, also where the other is idle for less time", async () => {
    const app = await edge.another({ connections: { total: 2, each: 3 } });
    const other = `http://127.0.0.1:${portOf(app)}/v1`;
    using busy = await openSocket(other, edge.key);
    const one = await begun(busy);
    using idle = await openSocket(other, edge.key);
    using newcomer = await openSocket(other, edge.key);
    expect(await idle.closed).toBe(1006);
    expect(one.signal.aborted).toBe(false);
    one.finish();
    expect((await busy.turn()).at(-1)?.type).toBe("response.completed");
    // The newcomer has been idle for longer.
    using next = await openSocket(other, edge.key);
    expect(await newcomer.closed).toBe(1006);
    for (const { ws } of [busy, next]) ws.terminate();
  });

  test("with 1012 when its process stops, idle ones at different times of two seconds", async () => {
    const app = await edge.another();
    const sockets: CallerSocket[] = [];
    for (let n = 0; n < 4; n++) {
      sockets.push(await openSocket(`http://127.0.0.1:${portOf(app)}/v1`, edge.key));
    }
    const closed: number[] = [];
    for (const [at, socket] of sockets.entries()) void socket.closed.then(() => closed.push(at));
    app.sockets.drain();
    for (const [afterMs, count] of [
      [0, 1],
      [500, 2],
      [500, 3],
      [500, 4],
    ] as const) {
      await edge.clock.advance(afterMs);
      await until(`${count} have closed`, () => closed.length >= count);
      expect(closed).toHaveLength(count);
    }
    expect(await Promise.all(sockets.map((socket) => socket.closed))).toEqual(Array(4).fill(1012));
  });

  test("with 1012 when its process stops, behind the answer that runs", async () => {
    const app = await edge.another();
    const other = `http://127.0.0.1:${portOf(app)}/v1`;
    using idle = await openSocket(other, edge.key);
    using busy = await openSocket(other, edge.key);
    const one = await begun(busy);
    busy.send({ type: "response.create", model: "chat-1", input: "It waits." });
    busy.ws.ping();
    await new Promise((resolve) => busy.ws.once("pong", resolve));
    app.sockets.drain();
    await edge.clock.advance(2_000);
    expect(await idle.closed).toBe(1012);
    expect(await refusedSocket(other, bearer)).toMatchObject({
      status: 503,
      headers: { connection: "close" },
    });
    expect(one.signal.aborted).toBe(false);
    one.finish();
    expect(await busy.closed).toBe(1012);
    expect(busy.frames).toMatchObject([
      { type: "error", error: { code: "websocket_connection_limit_reached" } },
      { type: "response.completed" },
    ]);
    await app.sockets.whenGone(new AbortController().signal);
  });

  test("with 1008 when its key is deleted, and its answer ends as a stream that is cut", async () => {
    const made = await edge.admin.createKey({ accountId: edge.accountId });
    using socket = await openSocket(base, made.secret);
    const one = await begun(socket);
    one.say(event("response.created", { response: { id: "resp_a" }, sequence_number: 0 }));
    await until("the answer has begun", () => socket.frames.length === 1);
    await edge.admin.revokeKey({ keyId: made.key?.keyId ?? "" });
    await edge.clock.advance(1_000);
    expect(await socket.closed).toBe(1008);
    expect(one.signal.aborted).toBe(true);
    expect(socket.frames).toMatchObject([
      { type: "response.created" },
      { type: "response.failed", response: { status: "failed" } },
      { type: "error", status: 401, error: { code: "invalid_api_key" } },
    ]);
  });
});
