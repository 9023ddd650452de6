import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { whenAborted } from "#kit/abort.ts";
import { ErrorReason, refuse } from "#kit/errors.ts";
import { fromConnectError } from "#kit/rpc/error-wire.ts";
import {
  type StreamGenerateResponse,
  StreamGenerateResponseSchema,
} from "#proto/genmesh/text/v1/text_service_pb.ts";
import { ErrorInfoSchema } from "#proto/google/rpc/error_details_pb.ts";
import { type ClientKind, type Handlers, type ServerKind, wireWorld } from "./wire.world.ts";

const pairings: [ClientKind, ServerKind][] = [
  ["our client", "our server"],
  ["our client", "the stock server"],
  ["the stock client", "our server"],
  ["the stock client with JSON", "our server"],
  // What the others are measured by.
  ["the stock client", "the stock server"],
];

function part(events: string | Uint8Array): StreamGenerateResponse {
  const value = typeof events === "string" ? Buffer.from(events) : events;
  return create(StreamGenerateResponseSchema, { part: { case: "events", value } });
}

async function read(stream: AsyncIterable<StreamGenerateResponse>): Promise<string[]> {
  const seen: string[] = [];
  for await (const { part } of stream) seen.push(Buffer.from(part.value ?? []).toString());
  return seen;
}

async function failure(work: Promise<unknown>): Promise<ConnectError> {
  return work.then(
    () => expect.unreachable("it should have failed"),
    (error: unknown) => ConnectError.from(error),
  );
}

/** A promise that a handler keeps when its caller's abort has reached it. */
function noticing() {
  const noticed = Promise.withResolvers<unknown>();
  const started = Promise.withResolvers<void>();
  return {
    noticed: noticed.promise,
    started: started.promise,
    async wait({ signal }: HandlerContext): Promise<never> {
      started.resolve();
      await whenAborted(signal);
      noticed.resolve(signal.reason);
      throw signal.reason;
    },
  };
}

describe.each(pairings)("%s with %s", (client, server) => {
  const open = (handlers: Handlers) => wireWorld({ client, server }, handlers);

  test("a unary call carries its message, headers and trailers both ways", async () => {
    await using world = await open({
      text: {
        generate(req, context) {
          context.responseHeader.set("x-answer", context.requestHeader.get("x-question") ?? "none");
          context.responseTrailer.set("x-trailer", "t1");
          return { body: Buffer.from(`${Buffer.from(req.body)}!`), replayed: true };
        },
      },
    });
    const seen: Record<string, string | null> = {};
    const answer = await world.text.generate(
      { body: Buffer.from("hello"), idempotencyKey: "k" },
      {
        headers: { "x-question": "why" },
        onHeader: (header) => {
          seen.header = header.get("x-answer");
        },
        onTrailer: (trailer) => {
          seen.trailer = trailer.get("x-trailer");
        },
      },
    );
    expect(Buffer.from(answer.body).toString()).toBe("hello!");
    expect(answer.replayed).toBe(true);
    expect(seen).toEqual({ header: "why", trailer: "t1" });
  });

  test("an empty message is a message", async () => {
    await using world = await open({ text: { generate: () => ({}) } });
    const answer = await world.text.generate({});
    expect(answer.body).toHaveLength(0);
  });

  test("a stream carries its messages in order, headers before and trailers after them", async () => {
    const all = Array.from({ length: 200 }, (_, i) => `message ${i}`);
    await using world = await open({
      text: {
        async *streamGenerate(_, context) {
          context.responseHeader.set("x-stream", "s1");
          for (const one of all) yield part(one);
          context.responseTrailer.set("x-trailer", "t1");
        },
      },
    });
    const seen: Record<string, string | null> = {};
    const stream = world.text.streamGenerate(
      {},
      {
        onHeader: (header) => {
          seen.header = header.get("x-stream");
        },
        onTrailer: (trailer) => {
          seen.trailer = trailer.get("x-trailer");
        },
      },
    );
    expect(await read(stream)).toEqual(all);
    expect(seen).toEqual({ header: "s1", trailer: "t1" });
  });

  test("a stream without messages ends", async () => {
    await using world = await open({ text: { async *streamGenerate() {} } });
    expect(await read(world.text.streamGenerate({}))).toEqual([]);
  });

  test("a message comes as soon as it is there", async () => {
    const next = Promise.withResolvers<void>();
    await using world = await open({
      text: {
        async *streamGenerate() {
          yield part("first");
          await next.promise;
          yield part("second");
        },
      },
    });
    const it = world.text.streamGenerate({})[Symbol.asyncIterator]();
    expect((await it.next()).value?.part.value).toEqual(new Uint8Array(Buffer.from("first")));
    next.resolve();
    expect((await it.next()).value?.part.value).toEqual(new Uint8Array(Buffer.from("second")));
    expect((await it.next()).done).toBe(true);
  });

  test("messages of 4 MiB pass, unary and in a stream", async () => {
    const large = Buffer.alloc(4 * 1024 * 1024, "0123456789abcdef");
    await using world = await open({
      text: {
        generate: (req) => ({ body: req.body }),
        async *streamGenerate(req) {
          yield part(req.body);
          yield part("small");
          yield part(req.body);
        },
      },
    });
    const { body } = await world.text.generate({ body: large });
    expect(large.equals(body)).toBe(true);
    const sizes = (await read(world.text.streamGenerate({ body: large }))).map((one) => one.length);
    expect(sizes).toEqual([large.length, 5, large.length]);
  });

  test("a client's stream is taken message by message", async () => {
    await using world = await open({
      media: {
        async uploadFile(requests) {
          let sizeBytes = 0n;
          let fileName = "";
          for await (const { part } of requests) {
            if (part.case === "header") fileName = part.value.fileName;
            if (part.case === "chunk") sizeBytes += BigInt(part.value.length);
          }
          return { file: { fileName, sizeBytes } };
        },
      },
    });
    const { file } = await world.media.uploadFile(upload(20));
    expect(file).toMatchObject({ fileName: "a.png", sizeBytes: BigInt(20 * chunkBytes) });
  });

  test("a refused upload says why, and the next call is served", async () => {
    await using world = await open({
      media: {
        async uploadFile(requests) {
          for await (const _ of requests) refuse(ErrorReason.UPLOAD_QUOTA_EXCEEDED);
          return {};
        },
      },
      text: { generate: () => ({ replayed: true }) },
    });
    const error = await failure(world.media.uploadFile(upload(3)));
    expect(fromConnectError(error)).toMatchObject({ reason: ErrorReason.UPLOAD_QUOTA_EXCEEDED });
    expect((await world.text.generate({})).replayed).toBe(true);
  });

  test("a refusal arrives with its facts and its metadata", async () => {
    await using world = await open({
      text: {
        generate: () =>
          refuse(ErrorReason.MODEL_NOT_FOUND, { param: "model", metadata: { model: "größer" } }),
      },
    });
    const error = await failure(world.text.generate({}));
    expect(error.findDetails(ErrorInfoSchema)).toMatchObject([{ domain: "genmesh" }]);
    expect(fromConnectError(error)).toMatchObject({
      name: "RefusalError",
      reason: ErrorReason.MODEL_NOT_FOUND,
      param: "model",
      metadata: { model: "größer" },
    });
  });

  test.each([
    Code.Canceled,
    Code.Unknown,
    Code.InvalidArgument,
    Code.DeadlineExceeded,
    Code.NotFound,
    Code.AlreadyExists,
    Code.PermissionDenied,
    Code.ResourceExhausted,
    Code.FailedPrecondition,
    Code.Aborted,
    Code.OutOfRange,
    Code.Unimplemented,
    Code.Internal,
    Code.Unavailable,
    Code.DataLoss,
    Code.Unauthenticated,
  ])("code %s stays what it is, unary and in a stream", async (code) => {
    const thrown = () => {
      throw new ConnectError("as it is", code, { "x-why": "because" });
    };
    await using world = await open({
      text: {
        generate: thrown,
        async *streamGenerate() {
          yield part("one");
          thrown();
        },
      },
    });
    const unary = await failure(world.text.generate({}));
    const stream = await failure(read(world.text.streamGenerate({})));
    for (const error of [unary, stream]) {
      expect(error).toMatchObject({ code, rawMessage: "as it is" });
      expect(error.metadata.get("x-why")).toBe("because");
    }
  });

  test("an error between two messages comes after the first, with its facts", async () => {
    await using world = await open({
      text: {
        async *streamGenerate() {
          yield part("one");
          refuse(ErrorReason.MODEL_REQUEST_FAILED, { metadata: { upstream: "u" } });
        },
      },
    });
    const it = world.text.streamGenerate({})[Symbol.asyncIterator]();
    expect((await it.next()).done).toBe(false);
    const error = await failure(it.next());
    expect(fromConnectError(error)).toMatchObject({
      reason: ErrorReason.MODEL_REQUEST_FAILED,
      metadata: { upstream: "u" },
    });
  });

  test("an error before the first message", async () => {
    await using world = await open({
      text: {
        // biome-ignore lint/correctness/useYield: it never comes to that.
        async *streamGenerate() {
          refuse(ErrorReason.SERVICE_UNAVAILABLE);
        },
      },
    });
    const error = await failure(read(world.text.streamGenerate({})));
    expect(fromConnectError(error)).toMatchObject({ reason: ErrorReason.SERVICE_UNAVAILABLE });
  });

  test("an unknown error leaves without its text", async () => {
    await using world = await open({
      text: {
        generate() {
          throw new Error("the secret is swordfish");
        },
      },
    });
    const error = await failure(world.text.generate({}));
    expect(error.message).not.toContain("swordfish");
    expect(fromConnectError(error)).toMatchObject({ reason: ErrorReason.INTERNAL_ERROR });
  });

  test("what is not implemented says so", async () => {
    await using world = await open({});
    expect((await failure(world.text.generate({}))).code).toBe(Code.Unimplemented);
    expect((await failure(read(world.text.streamGenerate({})))).code).toBe(Code.Unimplemented);
  });

  test("a deadline ends a unary call, and its handler knows", async () => {
    const handler = noticing();
    let leftMs: number | undefined;
    await using world = await open({
      text: {
        generate(_, context) {
          leftMs = context.timeoutMs();
          return handler.wait(context);
        },
      },
    });
    const error = await failure(world.text.generate({}, { timeoutMs: 150 }));
    expect(error.code).toBe(Code.DeadlineExceeded);
    await handler.noticed;
    expect(leftMs).toBeGreaterThan(0);
    expect(leftMs).toBeLessThanOrEqual(150);
  });

  test("a deadline ends a stream, and its handler knows", async () => {
    const handler = noticing();
    await using world = await open({
      text: {
        async *streamGenerate(_, context) {
          yield part("one");
          await handler.wait(context);
        },
      },
    });
    const error = await failure(read(world.text.streamGenerate({}, { timeoutMs: 150 })));
    expect(error.code).toBe(Code.DeadlineExceeded);
    await handler.noticed;
  });

  test("a cancelled unary call reaches its handler", async () => {
    const handler = noticing();
    await using world = await open({ text: { generate: (_, context) => handler.wait(context) } });
    const caller = new AbortController();
    const failing = failure(world.text.generate({}, { signal: caller.signal }));
    await handler.started;
    caller.abort();
    expect((await failing).code).toBe(Code.Canceled);
    await handler.noticed;
  });

  test("a cancelled stream reaches its handler", async () => {
    const handler = noticing();
    await using world = await open({
      text: {
        async *streamGenerate(_, context) {
          yield part("one");
          await handler.wait(context);
        },
      },
    });
    const caller = new AbortController();
    const it = world.text.streamGenerate({}, { signal: caller.signal })[Symbol.asyncIterator]();
    await it.next();
    const failing = failure(it.next());
    caller.abort();
    expect((await failing).code).toBe(Code.Canceled);
    await handler.noticed;
  });

  test("an interceptor at each end sees the call and may change it", async () => {
    await using world = await wireWorld(
      {
        client,
        server,
        clientInterceptors: [
          (next) => (req) => {
            req.header.set("x-from-client", req.method.name);
            return next({ ...req });
          },
        ],
        serverInterceptors: [
          (next) => async (req) => {
            req.header.set("x-from-server", `after ${req.header.get("x-from-client")}`);
            const res = await next({ ...req });
            res.header.set("x-out", "1");
            return { ...res };
          },
        ],
      },
      {
        text: {
          generate: (_, { requestHeader }) => ({
            body: Buffer.from(requestHeader.get("x-from-server") ?? ""),
          }),
          async *streamGenerate(_, { requestHeader }) {
            yield part(requestHeader.get("x-from-server") ?? "");
          },
        },
      },
    );
    const outs: (string | null)[] = [];
    const onHeader = (header: Headers) => outs.push(header.get("x-out"));
    const { body } = await world.text.generate({}, { onHeader });
    expect(Buffer.from(body).toString()).toBe("after Generate");
    expect(await read(world.text.streamGenerate({}, { onHeader }))).toEqual([
      "after StreamGenerate",
    ]);
    expect(outs).toEqual(["1", "1"]);
  });

  test("a server that dies in the middle of a message ends the stream with an error", async () => {
    const rest = Promise.withResolvers<void>();
    await using world = await open({
      text: {
        async *streamGenerate() {
          yield part("one");
          await rest.promise;
          yield part("never");
        },
        generate: () => rest.promise.then(() => ({})),
      },
    });
    const it = world.text.streamGenerate({})[Symbol.asyncIterator]();
    await it.next();
    const failingStream = failure(it.next());
    const failingUnary = failure(world.text.generate({}));
    while (world.requests.length < 2)
      await new Promise((done) => world.server.once("request", done));
    for (const socket of world.sockets) socket.resetAndDestroy();
    const codes = [(await failingStream).code, (await failingUnary).code];
    rest.resolve();
    for (const code of codes)
      expect([Code.Unavailable, Code.Internal, Code.Aborted]).toContain(code);
  });
});

const chunkBytes = 100_000;

async function* upload(chunks: number) {
  yield { part: { case: "header" as const, value: { fileName: "a.png" } } };
  for (let i = 0; i < chunks; i++) {
    yield { part: { case: "chunk" as const, value: Buffer.alloc(chunkBytes, i) } };
  }
}
