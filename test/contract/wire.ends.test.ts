import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { whenAborted } from "#kit/base/abort.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { fromConnectError } from "#kit/rpc/error-wire.ts";
import { ErrorInfoSchema } from "#proto/google/rpc/error_details_pb.ts";
import { failure, type Handlers, pairings, part, read, wireWorld } from "./wire.world.ts";

/** Milliseconds. The first connection is made within them too, and the handler must begin. */
const deadlineMs = 1_500;

/** A promise that a handler resolves when its caller's abort has reached it. */
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
    const error = await failure(world.text.generate({}, { timeoutMs: deadlineMs }));
    expect(error.code).toBe(Code.DeadlineExceeded);
    await handler.noticed;
    expect(leftMs).toBeGreaterThan(0);
    expect(leftMs).toBeLessThanOrEqual(deadlineMs);
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
    const error = await failure(read(world.text.streamGenerate({}, { timeoutMs: deadlineMs })));
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
