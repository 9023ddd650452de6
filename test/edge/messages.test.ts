import { afterEach, expect, test } from "vitest";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { keepAliveCommentMs } from "../../gateway/limits.ts";
import { openRaw, parseAnswer } from "./raw.ts";
import { type EdgeParts, type EdgeWorld, startEdge } from "./world.ts";

let edge: EdgeWorld | undefined;
afterEach(async () => {
  await edge?.[Symbol.asyncDispose]();
  edge = undefined;
});
async function start(text: NonNullable<EdgeParts["text"]>, more: EdgeParts = {}) {
  edge = await startEdge({ ...more, text });
  return edge;
}

const ask = JSON.stringify({ model: "chat-1", max_tokens: 9, messages: [], stream: true });
const event = (type: string) => `event: ${type}\ndata: ${JSON.stringify({ type })}\n\n`;
const part = (...types: string[]) => ({
  part: { case: "events" as const, value: Buffer.from(types.map(event).join("")) },
});

test("the body and its operation reach the service; a fallen bound is a header", async () => {
  const seen: unknown[] = [];
  const world = await start({
    async *streamGenerate({ operation, body }) {
      seen.push(operation, Buffer.from(body).toString());
      yield { ...part("message_start"), maxOutputTokens: 5_000n };
      yield part("message_delta", "message_stop");
    },
  });
  const answer = await world.post("/v1/messages", ask);
  expect(await answer.text()).toBe(
    ["message_start", "message_delta", "message_stop"].map(event).join(""),
  );
  expect(answer.headers.get("x-genmesh-max-tokens")).toBe("5000");
  expect(seen).toEqual([Operation.MESSAGES, ask]);
});

test("a silent stream gets an event ping every 15 s", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const world = await start({
    async *streamGenerate() {
      yield part("message_start");
      await promise;
      yield part("message_delta", "message_stop");
    },
  });
  const answer = await world.post("/v1/messages", ask);
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  const next = async () => Buffer.from((await reader.read()).value ?? []).toString();
  expect(await next()).toBe(event("message_start"));
  world.clock.advance(keepAliveCommentMs + 1_000);
  expect(await next()).toBe(event("ping"));
  resolve();
  expect(await next()).toBe(event("message_delta") + event("message_stop"));
});

test.for([
  [["message_start"], true],
  [["message_start", "error"], false],
  [["message_delta", "message_stop"], false],
] as const)("a stream of %j whose service disappears ends once", async ([types, hasError]) => {
  const world = await start({
    async *streamGenerate() {
      yield part(...types);
      refuse(ErrorReason.SERVICE_UNAVAILABLE);
    },
  });
  const answer = await world.post("/v1/messages", ask);
  const text = await answer.text();
  const rest = text.slice(types.map(event).join("").length);
  if (!hasError) return expect(rest).toBe("");
  const [name, data] = rest.trimEnd().split("\n");
  expect(name).toBe("event: error");
  expect(JSON.parse(`${data}`.slice("data: ".length))).toMatchObject({
    ...{ type: "error", error: { type: "api_error", code: "service_unavailable" } },
    request_id: answer.headers.get("request-id"),
  });
});

test("counts have ten times the requests' rate, beside them", async () => {
  const operations: unknown[] = [];
  const world = await start({
    countInput({ operation }) {
      operations.push(operation);
      return { inputTokens: 12n };
    },
    generate: () => ({ body: Buffer.from("{}") }),
  });
  const key = await world.makeKey({ requestsPerMinute: 2 });
  const headers = { authorization: `Bearer ${key}` };
  const count = () => world.post("/v1/messages/count_tokens", "{}", headers);
  const statuses = [];
  for (let i = 0; i < 21; i++) statuses.push((await count()).status);
  expect(statuses.slice(0, 20)).toEqual(Array(20).fill(200));
  const limited = await count();
  expect(limited.status).toBe(429);
  expect(await limited.json()).toMatchObject({ error: { type: "rate_limit_error" } });
  expect(limited.headers.get("retry-after")).toMatch(/^\d+$/);
  expect(operations[0]).toBe(Operation.MESSAGES);
  const answer = await world.post("/v1/messages", '{"model":"chat-1"}', headers);
  expect(answer.status).toBe(200);
});

test("a body that is too large is refused in Anthropic's form, before it is read", async () => {
  const world = await start({});
  const head = [
    "POST /v1/messages HTTP/1.1",
    "Host: a",
    `X-Api-Key: ${world.key}`,
    "Content-Type: application/json",
    `Content-Length: ${65 * 1024 * 1024}`,
  ];
  using raw = await openRaw(world.port);
  raw.send(`${head.join("\r\n")}\r\n\r\n{`);
  const { status, body } = parseAnswer(
    await raw.until((received) => received.includes("request_too_large")),
  );
  expect(status).toBe(413);
  expect(JSON.parse(body)).toMatchObject({ type: "error", error: { type: "request_too_large" } });
});
