import { describe, expect, test } from "vitest";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { fromConnectError } from "#kit/rpc/error-wire.ts";
import { failure, type Handlers, pairings, part, read, wireWorld } from "./wire.world.ts";

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
});

const chunkBytes = 100_000;

async function* upload(chunks: number) {
  yield { part: { case: "header" as const, value: { fileName: "a.png" } } };
  for (let i = 0; i < chunks; i++) {
    yield { part: { case: "chunk" as const, value: Buffer.alloc(chunkBytes, i) } };
  }
}
