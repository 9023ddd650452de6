import { connect } from "node:net";
import type { HandlerContext } from "@connectrpc/connect";
import { afterEach, describe, expect, test } from "vitest";
import { ErrorReason, RefusalError, refuse } from "#kit/base/errors.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { promptly } from "../support/promptly.ts";
import { untilStill } from "../support/until.ts";
import { openRaw, parseAnswer } from "./raw.ts";
import { type EdgeParts, type EdgeWorld, startEdge } from "./world.ts";

type Text = NonNullable<EdgeParts["text"]>;

let edge: EdgeWorld | undefined;
afterEach(async () => {
  await edge?.[Symbol.asyncDispose]();
  edge = undefined;
});
async function start(text: Text, parts: EdgeParts = {}): Promise<EdgeWorld> {
  edge = await startEdge({ ...parts, text });
  return edge;
}

const streamed = { model: "chat-1", input: "hi", stream: true };
const event = (type: string, n: number, more: object = {}) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: n, ...more })}\n\n`;
const events = (text: string) => ({
  part: { case: "events" as const, value: Buffer.from(text) },
});
const response = { id: "resp_1", object: "response", model: "chat-1", status: "in_progress" };
const created = event("response.created", 0, { response });

/** An event that a test causes when it wants. */
function gate() {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}

describe("JSON answers", () => {
  test("are the service's bytes; the body and the key's facts reach it untouched", async () => {
    const seen: unknown[] = [];
    const world = await start({
      generate: ({ operation, body, idempotencyKey, admission }, context) => {
        const principal = context.requestHeader.get("genmesh-principal");
        const requestId = context.requestHeader.get("x-request-id");
        seen.push({ operation, body: Buffer.from(body).toString(), idempotencyKey, principal });
        seen.push({ allowed: admission?.allowedModels, requestId });
        return { body: Buffer.from('{ "a" : 1.0 }'), replayed: idempotencyKey === "again" };
      },
    });
    const body = '{"input":"ä","input":"b", "model":"chat-1"}';
    const first = await world.post("/v1/responses", body, { "x-request-id": "r-1" });
    expect(await first.text()).toBe('{ "a" : 1.0 }');
    expect(first.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(first.headers.get("idempotency-replayed")).toBeNull();
    const principal = `${world.accountId}/${world.keyId}`;
    expect(seen).toEqual([
      { operation: Operation.RESPONSES, body, idempotencyKey: undefined, principal },
      { allowed: [], requestId: first.headers.get("x-request-id") },
    ]);
    const again = await world.post("/v1/chat/completions", "{}", { "idempotency-key": "again" });
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(seen[2]).toMatchObject({
      operation: Operation.CHAT_COMPLETIONS,
      idempotencyKey: "again",
    });
    await world.post("/v1/responses/compact", "{}", { "idempotency-key": "" });
    expect(seen[4]).toMatchObject({ operation: Operation.COMPACT, idempotencyKey: "" });
  });

  test("the streaming call may answer JSON too", async () => {
    const world = await start({
      async *streamGenerate() {
        yield { part: { case: "complete", value: Buffer.from('{"b":2}') }, replayed: true };
      },
    });
    const answer = await world.post("/v1/responses", { ...streamed, stream: false });
    expect(await answer.text()).toBe('{"b":2}');
    expect(answer.headers.get("idempotency-replayed")).toBe("true");
  });

  test.each(['{"str\\u0065am":true}', '{"\\u0073tream" : true}', '{ "stream" :true}'])(
    "%s goes to the streaming call",
    async (body) => {
      const world = await start({
        async *streamGenerate() {
          yield events(created);
        },
      });
      const answer = await world.post("/v1/responses", body);
      expect(answer.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
      expect(await answer.text()).toBe(created);
    },
  );

  test("a caller that leaves aborts the call at once", async () => {
    const called = gate();
    const aborted = Promise.withResolvers<void>();
    const world = await start({
      generate: (_: unknown, context: HandlerContext) => {
        context.signal.addEventListener("abort", () => aborted.resolve());
        called.open();
        return new Promise<never>(() => {});
      },
    });
    const leaving = new AbortController();
    const asked = world.ask("/v1/responses", {
      method: "POST",
      body: "{}",
      headers: { "content-type": "application/json", "x-request-id": "left" },
      signal: leaving.signal,
    });
    await called.opened;
    await promptly(250, () => {
      leaving.abort();
      return Promise.all([aborted.promise, expect(asked).rejects.toThrow()]);
    });
    await expect
      .poll(() => world.log.find((line) => line.clientRequestId === "left"))
      .toMatchObject({ status: 499 });
    expect(world.log.filter((line) => line.level === 50)).toEqual([]);
  });

  test("a call that waits behind another answer of its connection is aborted as well", async () => {
    const aborted = gate();
    let calls = 0;
    const both = gate();
    const world = await start({
      generate: (_: unknown, context: HandlerContext) => {
        calls += 1;
        if (calls === 2) both.open();
        const second = calls === 2;
        context.signal.addEventListener("abort", () => second && aborted.open());
        return new Promise<never>(() => {});
      },
    });
    const raw = await openRaw(world.port);
    const one = `POST /v1/responses HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${world.key}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`;
    raw.send(one + one);
    await both.opened;
    raw.socket.destroy();
    await aborted.opened;
  });
});

describe("event streams", () => {
  test("pass through as they come, with headers that keep proxies from collecting", async () => {
    const more = gate();
    const delta = event("response.output_text.delta", 1, { delta: "Hé" });
    const end = `${event("response.completed", 2)}data: [DONE]\n\n`;
    const world = await start({
      async *streamGenerate() {
        yield { ...events(created), replayed: true };
        await more.opened;
        yield events(delta);
        yield events(end);
      },
    });
    const answer = await world.post("/v1/responses", streamed);
    expect(answer.status).toBe(200);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache, no-transform",
      "x-accel-buffering": "no",
      "idempotency-replayed": "true",
      "x-request-id": expect.stringMatching(/^req_/),
      "x-ratelimit-limit-requests": expect.any(String),
    });
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe(created);
    more.open();
    let rest = "";
    for (let got = await reader.read(); !got.done; got = await reader.read()) {
      rest += Buffer.from(got.value).toString();
    }
    expect(rest).toBe(delta + end);
  });

  test("a refusal before the first event has its own status", async () => {
    const world = await start({
      // biome-ignore lint/correctness/useYield: it refuses before it has anything to say.
      async *streamGenerate() {
        refuse(ErrorReason.CONTEXT_LENGTH_EXCEEDED, { param: "input" });
      },
    });
    const answer = await world.post("/v1/responses", streamed);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { code: "context_length_exceeded" } });
  });

  test("silence: headers and a comment after 15 s, then a comment every 15 s", async () => {
    const called = gate();
    const first = gate();
    const world = await start({
      async *streamGenerate() {
        called.open();
        await first.opened;
        yield events(created);
      },
    });
    using raw = await openRaw(world.port);
    send(raw, world, streamed);
    await called.opened;
    await world.clock.advance(14_000);
    expect(raw.received()).toBe("");
    await world.clock.advance(1_000);
    await raw.until((text) => text.includes(": keep-alive\n"));
    expect(parseAnswer(raw.received()).status).toBe(200);
    await world.clock.advance(15_000);
    await raw.until((text) => text.split(": keep-alive\n").length === 3);
    first.open();
    await raw.until((text) => text.endsWith("0\r\n\r\n"));
    expect(raw.received()).toContain(created);
    expect(raw.received()).not.toContain(": keep-alive\n\n");
  });

  test("silence before a JSON answer that only mentions a stream sends nothing early", async () => {
    const called = gate();
    const first = gate();
    const world = await start({
      async *streamGenerate() {
        called.open();
        await first.opened;
        yield { part: { case: "complete", value: Buffer.from("{}") } };
      },
    });
    const asked = world.post("/v1/responses", { ...streamed, stream: false });
    await called.opened;
    await world.clock.advance(40_000);
    first.open();
    expect((await asked).headers.get("content-type")).toMatch(/^application\/json/);
  });

  test("a refusal after 15 s of silence is an event", async () => {
    const called = gate();
    const first = gate();
    const world = await start({
      // biome-ignore lint/correctness/useYield: it refuses before it has anything to say.
      async *streamGenerate() {
        called.open();
        await first.opened;
        refuse(ErrorReason.MODEL_REQUEST_FAILED);
      },
    });
    const asked = world.post("/v1/responses", streamed);
    await called.opened;
    await world.clock.advance(15_000);
    const answer = await asked;
    expect(answer.status).toBe(200);
    first.open();
    const [begun, going, failed, done] = dataOf(await answer.text());
    const response = { id: expect.stringMatching(/^resp_/), model: "chat-1", output: [] };
    expect([begun, going]).toMatchObject([
      { type: "response.created", sequence_number: 0, response },
      { type: "response.in_progress", sequence_number: 1, response },
    ]);
    expect(failed).toMatchObject({
      type: "response.failed",
      sequence_number: 2,
      response: {
        ...response,
        id: (begun as { response: { id: string } }).response.id,
        status: "failed",
        error: { code: "model_request_failed" },
        // Clients rely on these fields.
        tools: [],
        text: { format: { type: "text" } },
        metadata: {},
        usage: null,
      },
    });
    expect(done).toBe("[DONE]");
  });

  test("a service that goes away mid-stream: response.failed goes on with the numbers", async () => {
    const world = await start({
      async *streamGenerate() {
        yield events(created);
        yield events(event("response.output_text.delta", 1) + event("response.x", 2));
        throw new Error("gone");
      },
    });
    const answer = await world.post("/v1/responses", streamed);
    const data = dataOf(await answer.text());
    expect(data.at(-2)).toMatchObject({
      type: "response.failed",
      sequence_number: 3,
      response: {
        id: "resp_1",
        model: "chat-1",
        status: "failed",
        error: { code: "internal_error" },
      },
    });
    expect(data.at(-1)).toBe("[DONE]");
  });

  test("a service that goes away after the terminal event: the stream just ends properly", async () => {
    const end = event("response.completed", 1);
    const world = await start({
      async *streamGenerate() {
        yield events(created + end);
        throw new RefusalError(ErrorReason.SERVICE_UNAVAILABLE);
      },
    });
    const text = await (await world.post("/v1/responses", streamed)).text();
    expect(text).toBe(`${created}${end}data: [DONE]\n\n`);
  });

  test("chat: an error chunk, and never [DONE]", async () => {
    const world = await start({
      async *streamGenerate() {
        yield events('data: {"choices":[]}\n\n');
        refuse(ErrorReason.SERVICE_UNAVAILABLE);
      },
    });
    const text = await (await world.post("/v1/chat/completions", streamed)).text();
    expect(dataOf(text).at(-1)).toMatchObject({
      error: { type: "server_error", code: "service_unavailable" },
    });
    expect(text).not.toContain("[DONE]");
  });

  test("a caller that leaves mid-stream aborts the call within 250 ms", async () => {
    const aborted = Promise.withResolvers<void>();
    const world = await start({
      async *streamGenerate(_: unknown, context: HandlerContext) {
        context.signal.addEventListener("abort", () => aborted.resolve());
        yield events(created);
        await new Promise(() => {});
      },
    });
    const raw = await openRaw(world.port);
    send(raw, world, streamed);
    await raw.until((text) => text.includes(created));
    await promptly(250, () => {
      raw.socket.destroy();
      return aborted.promise;
    });
  });

  test.each([
    ["large", 64 * 1024, 2_000],
    ["small", 4 * 1024, 32_000],
  ])("a slow reader holds the service back, %s events", async (_size, bytes, count) => {
    const chunk = events(`data: ${"x".repeat(bytes)}\n\n`);
    let sent = 0;
    const world = await start({
      async *streamGenerate() {
        for (; sent < count; sent++) yield chunk;
      },
    });
    const raw = connect({ port: world.port, host: "127.0.0.1" }).pause();
    send({ send: (bytes) => void raw.write(bytes) }, world, streamed);
    // Kernel buffers take a few megabytes. Then the stream stops.
    expect(await untilStill("the service", () => sent)).toBeLessThan(count / 4);
    let received = 0;
    raw.resume();
    raw.on("data", (bytes) => {
      received += bytes.length;
    });
    await expect.poll(() => received, { timeout: 50_000 }).toBeGreaterThan(count * bytes);
    expect(sent).toBe(count);
    raw.destroy();
  });

  test("when the time for draining is over, open streams end with an error", async () => {
    const cutOff = new AbortController();
    const world = await start(
      {
        async *streamGenerate(_: unknown, { signal }: HandlerContext) {
          yield events(created);
          await new Promise((_resolve, reject) => {
            signal.addEventListener("abort", () => reject(signal.reason));
          });
        },
      },
      { cutOff: cutOff.signal },
    );
    const answer = await world.post("/v1/responses", streamed);
    cutOff.abort();
    expect(dataOf(await answer.text()).at(-2)).toMatchObject({
      type: "response.failed",
      response: { error: { code: "service_unavailable" } },
    });
  });
});

function send(raw: { send(bytes: string): void }, world: EdgeWorld, body: unknown): void {
  const json = JSON.stringify(body);
  raw.send(
    `POST /v1/responses HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${world.key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${json.length}\r\n\r\n${json}`,
  );
}

function dataOf(text: string): unknown[] {
  return [...text.matchAll(/^data: (.+)$/gm)].map(([, data = ""]) =>
    data === "[DONE]" ? data : JSON.parse(data),
  );
}
