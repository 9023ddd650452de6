import { request } from "node:http";
import { connect } from "node:net";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whenAborted } from "#kit/base/abort.ts";
import { prefixOf } from "#kit/rpc/wire/envelope.ts";
import {
  GenerateRequestSchema,
  GenerateResponseSchema,
  StreamGenerateRequestSchema,
} from "#proto/genmesh/text/v1/text_service_pb.ts";
import { type WireWorld, wireWorld } from "./wire.world.ts";

const generate = "/genmesh.text.v1.TextService/Generate";
const streamGenerate = "/genmesh.text.v1.TextService/StreamGenerate";
const maxMessageBytes = 100_000;

let world: WireWorld;
let left: PromiseWithResolvers<void>;
let started: PromiseWithResolvers<void>;

beforeAll(async () => {
  world = await wireWorld(
    { client: "our client", server: "our server", maxMessageBytes },
    {
      text: {
        generate: (req) => ({ body: Buffer.from(`${req.body.length}`) }),
        async *streamGenerate(req, { signal }) {
          if (req.body.length === 0) return;
          yield { part: { case: "events", value: req.body } };
          started.resolve();
          await whenAborted(signal);
          left.resolve();
        },
      },
    },
  );
});
afterAll(() => world[Symbol.asyncDispose]());

interface Reply {
  status: number;
  headers: Record<string, unknown>;
  body: Buffer;
}

function post(
  path: string,
  headers: Record<string, string>,
  body: Uint8Array = Buffer.alloc(0),
  method = "POST",
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const sent = request(`${world.origin}${path}`, { method, headers, agent: false }, (res) => {
      const chunks: Buffer[] = [];
      res.on("data", (chunk: Buffer) => chunks.push(chunk));
      res.on("end", () =>
        resolve({ status: res.statusCode ?? 0, headers: res.headers, body: Buffer.concat(chunks) }),
      );
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

const proto = { "content-type": "application/proto" };
const hello = toBinary(
  GenerateRequestSchema,
  create(GenerateRequestSchema, { body: Buffer.from("hello") }),
);

function streamBody(body: string): Buffer {
  const message = create(StreamGenerateRequestSchema, { body: Buffer.from(body) });
  const payload = toBinary(StreamGenerateRequestSchema, message);
  return Buffer.concat([prefixOf(0, payload.length), payload]);
}

describe("the server, to any client that speaks HTTP", () => {
  test("leaves other paths to their owner", async () => {
    expect((await post("/healthz", {}, undefined, "GET")).body.toString()).toBe("ops");
    expect((await post("/v1/responses", {})).body.toString()).toBe("ops");
  });

  test("answers without a protocol version, and with a query", async () => {
    const { status, body, headers } = await post(`${generate}?x=1`, proto, hello);
    expect(status).toBe(200);
    expect(headers["content-type"]).toBe("application/proto");
    expect(Buffer.from(fromBinary(GenerateResponseSchema, body).body).toString()).toBe("5");
  });

  test("speaks JSON", async () => {
    const body = Buffer.from(JSON.stringify({ body: "aGVsbG8=", unknownField: 1 }));
    const reply = await post(generate, { "content-type": "application/json; charset=utf-8" }, body);
    expect(JSON.parse(reply.body.toString())).toEqual({
      body: Buffer.from("5").toString("base64"),
    });
  });

  test.each([
    ["an unknown method", "/genmesh.text.v1.TextService/Nothing", proto, "POST", 404],
    ["an unknown service", "/genmesh.text.v9.TextService/Generate", proto, "POST", 404],
    ["GET", generate, proto, "GET", 405],
    ["another content type", generate, { "content-type": "text/plain" }, "POST", 415],
    ["no content type", generate, {}, "POST", 415],
    [
      "a stream's content type",
      generate,
      { "content-type": "application/connect+proto" },
      "POST",
      415,
    ],
    ["a unary content type", streamGenerate, proto, "POST", 415],
  ] as const)("%s is refused", async (_, path, headers, method, status) => {
    expect((await post(path, headers, undefined, method)).status).toBe(status);
  });

  test.each([
    ["a bad message", proto, Buffer.from([0xff, 0xff]), 500, "internal"],
    ["bad JSON", { "content-type": "application/json" }, Buffer.from("{"), 400, "invalid_argument"],
    ["a bad time-out", { ...proto, "connect-timeout-ms": "soon" }, hello, 400, "invalid_argument"],
    ["a time-out of 0", { ...proto, "connect-timeout-ms": "0" }, hello, 504, "deadline_exceeded"],
    ["compression", { ...proto, "content-encoding": "gzip" }, hello, 501, "unimplemented"],
    ["a large message", proto, Buffer.alloc(maxMessageBytes + 1), 429, "resource_exhausted"],
    [
      "a large message of unknown size",
      { ...proto, "transfer-encoding": "chunked" },
      Buffer.alloc(maxMessageBytes + 1),
      429,
      "resource_exhausted",
    ],
  ] as const)("%s is answered with an error", async (_, headers, body, status, code) => {
    const reply = await post(generate, headers, body);
    expect(reply.headers["content-type"]).toBe("application/json");
    expect([reply.status, JSON.parse(reply.body.toString()).code]).toEqual([status, code]);
  });

  test("a time-out of ten digits is a long one", async () => {
    const reply = await post(generate, { ...proto, "connect-timeout-ms": "9999999999" }, hello);
    expect(reply.status).toBe(200);
  });

  test.each([
    ["a large message", prefixOf(0, maxMessageBytes + 1), "resource_exhausted"],
    ["a message that is cut off", prefixOf(0, 10), "invalid_argument"],
    ["a compressed message", Buffer.concat([prefixOf(1, 1), Buffer.alloc(1)]), "internal"],
    ["no message", Buffer.alloc(0), "unimplemented"],
    ["two messages", Buffer.concat([streamBody(""), streamBody("")]), "unimplemented"],
  ])("in a stream, %s ends it with an error", async (_, body, code) => {
    const reply = await post(streamGenerate, { "content-type": "application/connect+proto" }, body);
    expect([reply.status, reply.headers["content-type"]]).toEqual([
      200,
      "application/connect+proto",
    ]);
    expect(reply.body[0]).toBe(2);
    expect(JSON.parse(reply.body.subarray(5).toString()).error.code).toBe(code);
  });

  test("a client that dies in the middle of its request is forgotten", async () => {
    const socket = connect(Number(new URL(world.origin).port), "127.0.0.1");
    socket.write(`POST ${generate} HTTP/1.1\r\nhost: x\r\ncontent-type: application/proto\r\n`);
    socket.write("content-length: 100\r\n\r\nabc");
    const before = world.requests.length;
    while (world.requests.length === before) {
      await new Promise((resolve) => world.server.once("request", resolve));
    }
    socket.resetAndDestroy();
    expect((await post(generate, proto, hello)).status).toBe(200);
  });

  test("a client that dies in the middle of its answer aborts the handler", async () => {
    left = Promise.withResolvers();
    started = Promise.withResolvers();
    const socket = connect(Number(new URL(world.origin).port), "127.0.0.1");
    const body = streamBody("x");
    const type = "content-type: application/connect+proto";
    socket.write(`POST ${streamGenerate} HTTP/1.1\r\nhost: x\r\n${type}\r\n`);
    socket.write(`content-length: ${body.length}\r\n\r\n`);
    socket.write(body);
    await started.promise;
    socket.resetAndDestroy();
    await left.promise;
  });
});
