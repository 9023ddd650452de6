import { once } from "node:events";
import { createServer } from "node:http";
import { connect, type OutgoingHttpHeaders } from "node:http2";
import { type AddressInfo, connect as connectTcp } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { randomIds } from "#kit/base/ids.ts";
import { createLogger } from "#kit/base/logger.ts";
import { accessInterceptor, callerCheck } from "#kit/rpc/access.ts";
import { healthService, maxHealthWatches } from "#kit/rpc/health.ts";
import { serverErrorInterceptor } from "#kit/rpc/interceptors.ts";
import { createGrpcServer, maxRefusedCalls } from "#kit/rpc/server.ts";
import { rpcService } from "#kit/rpc/service.ts";
import { createWireServer } from "#kit/rpc/wire-server.ts";
import { CatalogService } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";

// A process without a token that reaches an internal port can make the server keep or do next to nothing.

const tokens = { mesh: ["token-of-the-mesh"] };
const log = createLogger("silent");
const catalog = rpcService(CatalogService, { getSnapshot: () => ({}) } as never);
const services = [catalog, healthService([catalog], () => undefined)];
const interceptors = [serverErrorInterceptor({ log, ids: randomIds }), accessInterceptor(tokens)];
const isCaller = callerCheck(tokens);
const path = "/genmesh.catalog.v1.CatalogService/GetSnapshot";
const watchPath = "/genmesh.catalog.v1.CatalogService/WatchSnapshots";
/** The beginning of a message that never ends. */
const announced = Buffer.from([0, 0x03, 0xc0, 0, 0]);

const stack: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of stack.splice(0).reverse()) await close();
});

async function openSession() {
  const server = createGrpcServer({ services, interceptors, isCaller });
  stack.push(() => server.close());
  const session = connect(`http://127.0.0.1:${await server.listen("127.0.0.1", 0)}`);
  session.on("error", () => {});
  stack.push(() => session.destroy());
  return session;
}

/** Begins a call, sends part of its message, and answers the server's bytes before the rest. */
async function halfSent(
  session: Awaited<ReturnType<typeof openSession>>,
  headers: OutgoingHttpHeaders,
) {
  const stream = session.request({ ":method": "POST", ":path": path, ...headers });
  stream.on("error", () => {});
  stream.write(announced);
  const chunks: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  const [head] = await once(stream, "response");
  if (!stream.closed) await once(stream, "close");
  return { head, body: Buffer.concat(chunks) };
}

describe("the gRPC port, without a token", () => {
  test("gRPC is refused, and its stream closed, before its message is read", async () => {
    const { head } = await halfSent(await openSession(), { "content-type": "application/grpc" });
    expect(head).toMatchObject({ ":status": 200, "grpc-status": "16" });
    expect(head["grpc-status-details-bin"]).toBeTruthy();
  });

  test("a Connect call too, with its error", async () => {
    const headers = { "content-type": "application/proto" };
    const { head, body } = await halfSent(await openSession(), headers);
    expect(head[":status"]).toBe(401);
    expect(JSON.parse(body.toString())).toMatchObject({ code: "unauthenticated" });
  });

  test("a Connect stream too, by its last envelope", async () => {
    const headers = { ":path": watchPath, "content-type": "application/connect+json" };
    const { head, body } = await halfSent(await openSession(), headers);
    expect(head[":status"]).toBe(200);
    expect(body[0]).toBe(2);
    const end = JSON.parse(body.subarray(5).toString());
    expect(end).toMatchObject({ error: { code: "unauthenticated" } });
  });

  test("a session that goes on is ended", async () => {
    const session = await openSession();
    const closed = once(session, "close");
    for (let i = 0; i < maxRefusedCalls; i++) {
      const headers = { "content-type": "application/grpc" };
      session.request({ ":method": "POST", ":path": path, ...headers }).on("error", () => {});
    }
    await closed;
  });

  test("health takes a name and nothing larger", async () => {
    const large = Buffer.alloc(5 + 8_192);
    large.writeUInt32BE(8_192, 1);
    const headers = { ":path": "/grpc.health.v1.Health/Check", "content-type": "application/grpc" };
    const stream = (await openSession()).request({ ":method": "POST", ...headers });
    stream
      .on("error", () => {})
      .resume()
      .write(large);
    const [trailers] = await once(stream, "trailers");
    expect(trailers["grpc-status"]).toBe("8");
  });

  test("health is watched by so many at once, and no more", async () => {
    const session = await openSession();
    const watch = () => {
      const headers = {
        ":path": "/grpc.health.v1.Health/Watch",
        "content-type": "application/grpc",
      };
      const stream = session.request({ ":method": "POST", ...headers });
      stream.on("error", () => {});
      stream.end(Buffer.alloc(5));
      return stream;
    };
    for (let i = 0; i < maxHealthWatches; i++) await once(watch(), "data");
    const [trailers] = await once(watch(), "trailers");
    expect(trailers["grpc-status"]).toBe("8");
  });
});

test("the Connect port refuses a call without a token before its body is read", async () => {
  const wire = createWireServer({ services, interceptors, isCaller });
  const server = createServer((req, res) => void wire.handler(req, res)).listen(0, "127.0.0.1");
  await once(server, "listening");
  stack.push(() => server.close());
  const socket = connectTcp((server.address() as AddressInfo).port, "127.0.0.1");
  stack.push(() => socket.destroy());
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/proto\r\ncontent-length: 60000000\r\n\r\nabc`,
  );
  let answer = "";
  for await (const chunk of socket) answer += chunk;
  expect(answer).toMatch(/^HTTP\/1\.1 401 /);
  expect(answer).toContain('"unauthenticated"');
  expect(wire.openCalls).toBe(0);
});
