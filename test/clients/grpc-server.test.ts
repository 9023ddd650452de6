import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import * as grpc from "@grpc/grpc-js";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { randomIds } from "#kit/base/ids.ts";
import { createLogger } from "#kit/base/logger.ts";
import { healthService } from "#kit/rpc/health.ts";
import { serverErrorInterceptor } from "#kit/rpc/interceptors.ts";
import { createGrpcServer } from "#kit/rpc/server.ts";
import { rpcService } from "#kit/rpc/service.ts";
import type { ServerTls, TlsMaterial } from "#kit/rpc/tls.ts";
import {
  CatalogService,
  WatchSnapshotsRequestSchema,
  WatchSnapshotsResponseSchema,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import {
  HealthCheckRequestSchema,
  type HealthCheckResponse,
  HealthCheckResponseSchema,
} from "#proto/grpc/health/v1/health_pb.ts";
import {
  type Authority,
  type CertificateFolder,
  certificateFolder,
  noCertificates,
  type Pair,
} from "../support/certificates.ts";
import { until } from "../support/until.ts";
import { failure } from "./grpc-reflected.ts";

// The server of the gRPC port alone, with a service that shows the calls of grpc-js.

const stack: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const close of stack.splice(0).reverse()) await close();
});

/** A server whose catalog sends one heartbeat, then waits until its caller has gone. */
async function serve(tls?: ServerTls) {
  const calls: HandlerContext[] = [];
  const catalog = rpcService(CatalogService, {
    checkDraft: () => ({}),
    getText: () => ({}),
    listVersions: () => ({}),
    putInForce: () => ({}),
    listUpstreamKeys: () => ({}),
    setUpstreamKey: () => ({}),
    deleteUpstreamKey: () => ({}),
    getSnapshot: () => ({}),
    async *watchSnapshots(_, context) {
      calls.push(context);
      yield {};
      if (!context.signal.aborted) await once(context.signal, "abort");
    },
  });
  const server = createGrpcServer({
    services: [catalog, healthService([catalog], () => undefined)],
    interceptors: [serverErrorInterceptor({ log: createLogger("silent"), ids: randomIds })],
    ...(tls ? { tls } : {}),
  });
  stack.push(() => server.close());
  return { calls, port: await server.listen("127.0.0.1", 0), close: () => server.close() };
}

function connect(port: number, credentials = grpc.credentials.createInsecure(), options = {}) {
  const client = new grpc.Client(`127.0.0.1:${port}`, credentials, options);
  stack.push(() => client.close());
  return client;
}

function watch(client: grpc.Client, options: grpc.CallOptions = {}) {
  return client.makeServerStreamRequest(
    "/genmesh.catalog.v1.CatalogService/WatchSnapshots",
    () => Buffer.from(toBinary(WatchSnapshotsRequestSchema, create(WatchSnapshotsRequestSchema))),
    (bytes) => fromBinary(WatchSnapshotsResponseSchema, bytes),
    {},
    new grpc.Metadata(),
    options,
  );
}

function check(client: grpc.Client): Promise<HealthCheckResponse | undefined> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      "/grpc.health.v1.Health/Check",
      () => Buffer.from(toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema))),
      (bytes) => fromBinary(HealthCheckResponseSchema, bytes),
      {},
      new grpc.Metadata(),
      { deadline: Date.now() + 10_000 },
      (error, answer) => (error ? reject(error) : resolve(answer)),
    );
  });
}

describe("a call that its caller ends", () => {
  test("a cancellation reaches the handler", async () => {
    const { calls, port } = await serve();
    const call = watch(connect(port));
    const ended = failure(
      (async () => {
        for await (const _ of call) call.cancel();
      })(),
    );
    expect((await ended).code).toBe(grpc.status.CANCELLED);
    await until("the handler's signal", () => calls[0]?.signal.aborted);
  });

  test("a connection that goes reaches the handler", async () => {
    const { calls, port } = await serve();
    const client = connect(port);
    const call = watch(client);
    call.on("error", () => {});
    await once(call, "data");
    client.close();
    call.cancel();
    await until("the handler's signal", () => calls[0]?.signal.aborted);
  });

  test("a deadline reaches the handler, and a stream that ends by it has not ended well", async () => {
    const { calls, port } = await serve();
    // The client's own timer would hide the server's answer. So this client sends the deadline and does not watch it.
    const metadata = new grpc.Metadata();
    metadata.set("grpc-timeout", "200m");
    const call = connect(port).makeServerStreamRequest(
      "/genmesh.catalog.v1.CatalogService/WatchSnapshots",
      () => Buffer.alloc(0),
      (bytes) => fromBinary(WatchSnapshotsResponseSchema, bytes),
      {},
      metadata,
    );
    const error = await failure(
      (async () => {
        for await (const message of call) expect(message).toBeDefined();
      })(),
    );
    expect(error.code).toBe(grpc.status.DEADLINE_EXCEEDED);
    expect(calls[0]?.signal.aborted).toBe(true);
    expect(calls[0]?.timeoutMs()).toBeLessThanOrEqual(0);
  });
});

describe("the port", () => {
  async function session(port: number): Promise<ClientHttp2Session> {
    const opened = connectHttp2(`http://127.0.0.1:${port}`);
    stack.push(() => opened.destroy());
    await once(opened, "remoteSettings");
    return opened;
  }

  async function answerTo(opened: ClientHttp2Session, path: string, contentType: string) {
    const request = opened.request({
      ":method": "POST",
      ":path": path,
      "content-type": contentType,
    });
    request.end("{}");
    const [headers] = await once(request, "response");
    const body = await request.setEncoding("utf8").toArray();
    return { status: headers[":status"], body: body.join("") };
  }

  test("takes 256 calls at once on a session", async () => {
    const { port } = await serve();
    expect((await session(port)).remoteSettings.maxConcurrentStreams).toBe(256);
  });

  test("says of what it does not have that it is not there, in no words of a framework's", async () => {
    const { port } = await serve();
    const opened = await session(port);
    const check = "/grpc.health.v1.Health/Check";
    expect(await answerTo(opened, check, "application/json")).toEqual({
      status: 200,
      body: '{"status":"SERVING"}',
    });
    expect(await answerTo(opened, "/no.such.Service/Method", "application/json")).toEqual({
      status: 404,
      body: "",
    });
    expect(await answerTo(opened, check, "text/plain")).toEqual({ status: 415, body: "" });
    const error = await failure(
      new Promise((resolve, reject) => {
        connect(port).makeUnaryRequest(
          "/grpc.health.v1.Health/NoSuchMethod",
          (bytes: Buffer) => bytes,
          (bytes) => bytes,
          Buffer.alloc(0),
          (fault, answer) => (fault ? reject(fault) : resolve(answer)),
        );
      }),
    );
    expect(error.code).toBe(grpc.status.UNIMPLEMENTED);
  });

  test("closes though a session is idle and a stream is open", async () => {
    const { calls, port, close } = await serve();
    const idle = await session(port);
    const call = watch(connect(port));
    call.on("error", () => {});
    await once(call, "data");
    const left = once(idle, "close");
    await Promise.all([close(), left]);
    expect(calls[0]?.signal.aborted).toBe(true);
  });
});

describe.skipIf(noCertificates)(`TLS on the port${noCertificates ?? ""}`, () => {
  const name = { "grpc.ssl_target_name_override": "peer.test" };
  let folder: CertificateFolder;
  let ours: Authority;
  let [pair, client, stranger]: Pair[] = [];
  let listener: ((material: TlsMaterial) => void) | undefined;
  const source = {
    material: {} as TlsMaterial,
    current: () => source.material,
    onChange(heard: (material: TlsMaterial) => void) {
      listener = heard;
      return () => {};
    },
  };

  beforeAll(async () => {
    folder = await certificateFolder();
    ours = await folder.authority("ours");
    const theirs = await folder.authority("theirs");
    [pair, client, stranger] = await Promise.all([
      ours.issue("peer.test"),
      ours.issue("caller.test"),
      theirs.issue("caller.test"),
    ]);
  });
  afterAll(() => folder[Symbol.asyncDispose]());

  const credentials = (shown?: Pair, ca = ours.ca) =>
    grpc.credentials.createSsl(
      Buffer.from(ca),
      ...(shown ? [Buffer.from(shown.key), Buffer.from(shown.cert)] : []),
    );

  test("answers a client that trusts its authority, and no plain one", async () => {
    source.material = { ...(pair as Pair) };
    const { port } = await serve({ source, clientAuth: false });
    expect(await check(connect(port, credentials(), name))).toMatchObject({ status: 1 });
    expect((await failure(check(connect(port)))).code).toBe(grpc.status.UNAVAILABLE);
    const wrongName = { "grpc.ssl_target_name_override": "other.test" };
    const refused = await failure(check(connect(port, credentials(), wrongName)));
    expect(refused.code).toBe(grpc.status.UNAVAILABLE);
  });

  test("with client authentication only certificates of the authority are heard", async () => {
    source.material = { ...(pair as Pair), ca: ours.ca };
    const { port } = await serve({ source, clientAuth: true });
    expect(await check(connect(port, credentials(client), name))).toMatchObject({ status: 1 });
    for (const shown of [undefined, stranger]) {
      const error = await failure(check(connect(port, credentials(shown), name)));
      expect(error.code).toBe(grpc.status.UNAVAILABLE);
    }
  });

  test("new certificates are shown to new connections, and streams of the old ones go on", async () => {
    source.material = { ...(pair as Pair), ca: ours.ca };
    const { port } = await serve({ source, clientAuth: false });
    const former = connect(port, credentials(), name);
    expect(await check(former)).toMatchObject({ status: 1 });
    const next = await folder.authority("next");
    source.material = { ...(await next.issue("peer.test")), ca: next.ca };
    listener?.(source.material);
    const fresh = connect(port, credentials(undefined, next.ca), {
      ...name,
      "grpc.use_local_subchannel_pool": 1,
    });
    expect(await check(fresh)).toMatchObject({ status: 1 });
    expect(await check(former)).toMatchObject({ status: 1 });
  });
});
