import { afterAll, beforeEach, describe, expect, test } from "vitest";
import type { Asked } from "./caller.ts";
import { developerPrompt } from "./catalog.ts";
import type { SseEvent } from "./sse.ts";
import { isOwnWorld, ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();
const path = "/messages";
const hi = [{ role: "user", content: "say hello" }];
const ask = { model: "chat-1", max_tokens: 100, messages: hi };
const scripted = { ...ask, model: "scripted" };

const errorOf = ({ status, json }: Pick<Asked, "status" | "json">) =>
  `${status} ${json?.type} ${json?.error?.type} ${json?.error?.code}`;

/** Checks the rules of every stream that succeeds. */
function expectWellFormed(events: readonly SseEvent[]): void {
  const types = events.map(({ json }) => json.type);
  expect(types[0]).toBe("message_start");
  expect(types.slice(-2)).toEqual(["message_delta", "message_stop"]);
  expect(events.every(({ name, json }) => name === json.type)).toBe(true);
  let open: number | undefined;
  let next = 0;
  for (const { json } of events) {
    if (json.type === "content_block_start") {
      expect([open, json.index]).toEqual([undefined, next]);
      open = json.index;
    } else if (json.type === "content_block_stop") {
      expect(json.index).toBe(open);
      open = undefined;
      next++;
    } else if (json.type === "content_block_delta") expect(json.index).toBe(open);
  }
  expect(open).toBeUndefined();
}

const textOf = (events: readonly SseEvent[]) =>
  events.map(({ json }) => json.delta?.text ?? "").join("");

describe("a message of the builtin model", () => {
  test("has the object's fields, and costs what a response does", async () => {
    const { status, json, headers } = await caller.post(path, ask);
    expect(status).toBe(200);
    expect(json).toEqual({
      ...{ id: expect.stringMatching(/^msg_/), type: "message", role: "assistant" },
      ...{ model: "chat-1", content: [{ type: "text", text: "hello", citations: null }] },
      ...{ stop_reason: "end_turn", stop_sequence: null, stop_details: null },
      usage: expect.objectContaining({
        ...{ input_tokens: expect.any(Number), output_tokens: 1 },
        ...{ cache_read_input_tokens: 0, cache_creation_input_tokens: 0 },
        ...{ cost: expect.any(Number), costUsdMicros: expect.any(Number) },
      }),
    });
    expect(headers.get("request-id")).toBe(headers.get("x-request-id"));
    expect(headers.get("x-genmesh-cost-usd-micros")).toBe(`${json.usage.costUsdMicros}`);
  });

  test("streams Anthropic's events, with the query that Claude Code sends", async () => {
    const events = await caller.stream(`${path}?beta=true`, ask);
    expectWellFormed(events);
    expect(textOf(events)).toBe("hello");
    const end = events.at(-2)?.json;
    expect(end.delta).toEqual({ stop_reason: "end_turn", stop_sequence: null, stop_details: null });
    expect(end.usage).toMatchObject({ output_tokens: 1, costUsdMicros: expect.any(Number) });
  });

  test("calls a tool, and answers by its result", async () => {
    const tools = [
      { name: "get_weather", input_schema: { type: "object", properties: { city: {} } } },
    ];
    const messages = [{ role: "user", content: "Weather in Paris?" }];
    const first = await caller.post(path, { ...ask, messages, tools });
    expect(first.json.stop_reason).toBe("tool_use");
    const call = first.json.content.find(({ type }: { type: string }) => type === "tool_use");
    expect(call).toMatchObject({ name: "get_weather", input: expect.any(Object) });
    const result = { type: "tool_result", tool_use_id: call.id, content: "21 degrees, sunny" };
    const turn = [
      { role: "assistant", content: first.json.content },
      { role: "user", content: [result] },
    ];
    const second = await caller.post(path, { ...ask, messages: [...messages, ...turn], tools });
    expect(second.json.content[0].text).toContain("21 degrees");
  });

  test("is repeated for its idempotency key, as JSON and as events", async () => {
    const other = await world.caller();
    const idempotencyKey = "message-1";
    const first = await other.post(path, ask, { idempotencyKey });
    const again = await other.post(path, ask, { idempotencyKey });
    expect(again.text).toBe(first.text);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    const events = await other.stream(path, ask, { idempotencyKey });
    expectWellFormed(events);
    expect(textOf(events)).toBe("hello");
    expect(events.at(-2)?.json.usage).toEqual(first.json.usage);
    const reused = await other.post(path, { ...ask, max_tokens: 5 }, { idempotencyKey });
    expect(errorOf(reused)).toBe("422 error invalid_request_error idempotency_key_reused");
    expect(reused.headers.get("x-should-retry")).toBe("false");
    const streamed = { idempotencyKey: "message-2" };
    await other.stream(path, ask, streamed);
    const whole = await other.post(path, ask, streamed);
    expect(whole.json).toMatchObject({ content: [{ text: "hello" }], stop_reason: "end_turn" });
    expect((await other.balance()).monthSpend).toBe(2 * first.json.usage.costUsdMicros);
  });
});

describe("keys", () => {
  const send = (headers: Record<string, string>, at = path) =>
    fetch(`${caller.baseUrl}${at}`, {
      method: at === path ? "POST" : "GET",
      headers: { "content-type": "application/json", ...headers },
      ...(at === path ? { body: JSON.stringify(ask) } : {}),
    });

  test("come as x-api-key, as Bearer, or as both where they are the same", async () => {
    const key = caller.key;
    const statuses = [
      await send({ "x-api-key": key }),
      await send({ "x-api-key": key, authorization: `Bearer ${key}` }),
      await send({ "x-api-key": key, authorization: `bearer  ${key}` }),
      await send({ "x-api-key": key }, "/models"),
      await send({ "x-api-key": key, authorization: "Bearer sk-another-key-of-another-account" }),
      await send({ "x-api-key": "sk-another-key-of-another-account" }),
      await send({}),
      await send({ "x-api-key": key }, "/billing"),
    ].map(({ status }) => status);
    expect(statuses).toEqual([200, 200, 200, 200, 401, 401, 401, 401]);
  });

  test("are refused in Anthropic's form under its paths, and on its list of models", async () => {
    const version = { "anthropic-version": "2023-06-01" };
    for (const [at, headers] of [
      [path, {}],
      ["/models", version],
      ["/models/none", version],
    ] as const) {
      const answer = await send(headers, at);
      const json = (await answer.json()) as { request_id: string };
      expect(json).toMatchObject({ type: "error", error: { type: "authentication_error" } });
      expect(answer.headers.get("request-id")).toBe(json.request_id);
    }
    const ours = (await (await send({}, "/models")).json()) as object;
    expect(ours).toMatchObject({ error: { code: "invalid_api_key", param: null } });
    expect(ours).not.toHaveProperty("type");
  });
});

test("the list of models has the fields of both APIs", async () => {
  const { json } = await caller.get("/models?limit=1000");
  const [first] = json.data;
  const last = json.data.at(-1);
  expect(json).toMatchObject({ object: "list", has_more: false, first_id: first.id });
  expect(json.last_id).toBe(last.id);
  expect(first).toMatchObject({
    ...{ object: "model", type: "model", display_name: first.name },
    created_at: "1970-01-01T00:00:00.000Z",
  });
});

describe("refusals", () => {
  test("have Anthropic's form and types, unknown paths among them", async () => {
    const statuses = async (at: string, body: unknown) => errorOf(await caller.post(at, body));
    expect(await statuses(path, { ...ask, model: "none" })).toBe(
      "404 error not_found_error model_not_found",
    );
    expect(await statuses(path, "{")).toBe("400 error invalid_request_error invalid_json");
    expect(await statuses("/messages/batches", {})).toBe("404 error not_found_error unknown_route");
    const get = await caller.get(path);
    expect(errorOf(get)).toBe("405 error invalid_request_error method_not_allowed");
    const plain = await caller.post(path, "{}", { headers: { "content-type": "text/plain" } });
    expect(errorOf(plain)).toBe("415 error invalid_request_error unsupported_media_type");
    const poor = await world.caller({ usdMicros: 1n });
    const unpaid = await poor.post(path, ask);
    expect(errorOf(unpaid)).toBe("402 error billing_error insufficient_balance");
    expect(unpaid.headers.get("x-should-retry")).toBe("false");
  });

  test("say how much too long a prompt is, in the words that clients read", async () => {
    const words = "word ".repeat(2_000);
    const body = { ...ask, model: "tiny", messages: [{ role: "user", content: words }] };
    const { status, json } = await caller.post(path, body);
    expect(status).toBe(400);
    const [, tokens, most] =
      /^prompt is too long: (\d+) tokens > (\d+) maximum$/.exec(json.error.message) ?? [];
    expect(Number(tokens)).toBeGreaterThan(Number(most));
    expect(json.error.code).toBe("context_length_exceeded");
  });
});

describe("with an upstream", () => {
  ownWorldOnly();
  beforeEach(() => {
    if (isOwnWorld) world.play();
  });

  test("it gets a request of Responses, with the configured prompt, and no answer shows that", async () => {
    const seen = world.play();
    const { json, headers } = await caller.post(path, {
      ...{ ...scripted, system: "Mine.", temperature: 0.5, top_k: 5, metadata: { user_id: "u" } },
      ...{ service_tier: "auto", context_management: { edits: [] }, nonsense: 1 },
    });
    expect(json.content).toEqual([{ type: "text", text: "Hello from upstream.", citations: null }]);
    expect(seen[0]?.path).toBe("/v1/responses");
    expect(seen[0]?.body).toMatchObject({
      ...{ model: "up-model", stream: false, store: false, temperature: 0.5 },
      ...{ instructions: `${developerPrompt}\n\nMine.`, max_output_tokens: 100 },
      prompt_cache_key: expect.stringMatching(/^[\w-]{43}$/),
    });
    const ignored = headers.get("x-genmesh-ignored-parameters")?.split(", ") ?? [];
    expect(ignored.sort()).toEqual([
      ...["context_management", "metadata", "nonsense", "service_tier", "top_k"],
    ]);
  });

  test("numbers of a call keep their spelling", async () => {
    const seen = world.play();
    const input = `{"at":1.50,"n":1e3}`;
    const turn = `{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"look","input":${input}}]}`;
    const result = {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "t", content: "A" }],
    };
    const messages = `[${JSON.stringify(hi[0])},${turn},${JSON.stringify(result)}]`;
    const sent = `{"model":"scripted","max_tokens":100,"messages":${messages}}`;
    expect((await caller.post(path, sent)).status).toBe(200);
    const calls = seen[0]?.body.input.filter(
      ({ type }: { type: string }) => type === "function_call",
    );
    expect(calls).toMatchObject([{ arguments: input }]);
  });

  test("costs to the micro, streamed and whole", async () => {
    const own = await world.caller();
    const usage = {
      ...{ input_tokens: 100, output_tokens: 7 },
      input_tokens_details: { cached_tokens: 60, cache_write_tokens: 10 },
    };
    world.play({ kind: "ok", usage });
    const { json } = await own.post(path, scripted);
    expect(json.usage).toMatchObject({
      ...{ input_tokens: 30, cache_read_input_tokens: 60, cache_creation_input_tokens: 10 },
      ...{ output_tokens: 7, costUsdMicros: 83, cost: 0.000083 },
    });
    const events = await own.stream(path, scripted);
    expectWellFormed(events);
    expect(events.at(-2)?.json.usage).toMatchObject({ output_tokens: 7, costUsdMicros: 83 });
    expect((await own.settled()).monthSpend).toBe(166);
    const { json: listed } = await own.get("/requests");
    expect(listed.data).toMatchObject([
      { operation: "messages", costUsdMicros: 83, streamed: true },
      { operation: "messages", costUsdMicros: 83, streamed: false },
    ]);
    const { json: one } = await own.get(`/generation?id=${json.id}`);
    expect(one.data).toMatchObject({ costUsdMicros: 83 });
  });

  test("without usage the count of genmesh is charged, and says so", async () => {
    const own = await world.caller();
    world.play({ kind: "ok", usage: null });
    const { json } = await own.post(path, scripted);
    expect(json.usage).toMatchObject({ estimated: true, output_tokens: expect.any(Number) });
    const events = await own.stream(path, scripted);
    expect(events.at(-2)?.json.usage).toMatchObject({
      estimated: true,
      input_tokens: json.usage.input_tokens,
    });
    const { monthSpend } = await own.settled();
    expect(monthSpend).toBe(json.usage.costUsdMicros * 2);
  });

  test("a stream that breaks ends with an error, and without message_stop", async () => {
    world.play({ kind: "ok", break: { how: "destroy", after: 2 } });
    const events = await caller.stream(path, scripted);
    expect(events.at(-1)?.json).toMatchObject({
      ...{ type: "error", error: { type: "api_error", code: "model_request_failed" } },
    });
    expect(events.map(({ json }) => json.type)).not.toContain("message_stop");
    world.play({ kind: "status", status: 500 });
    expect(errorOf(await caller.post(path, scripted))).toBe(
      "502 error api_error model_request_failed",
    );
    world.play({ kind: "status", status: 429 });
    const busy = await caller.post(path, scripted);
    expect(errorOf(busy)).toBe("529 error overloaded_error model_request_failed");
    expect(busy.headers.get("retry-after")).toMatch(/^\d+$/);
  });

  test("a model of Chat Completions alone answers too, streamed and whole", async () => {
    const own = await world.caller();
    const usage = { input_tokens: 100, output_tokens: 7 };
    const seen = world.play({ kind: "ok", usage });
    const legacy = { ...scripted, model: "legacy", system: "Mine.", top_k: 5 };
    const { json, headers } = await own.post(path, legacy);
    expect(json).toMatchObject({
      ...{ content: [{ type: "text", text: "Hello from upstream." }], stop_reason: "end_turn" },
      usage: { input_tokens: 100, output_tokens: 7, costUsdMicros: 128 },
    });
    expect(headers.get("x-genmesh-ignored-parameters")).toBe("top_k");
    const events = await own.stream(path, legacy);
    expectWellFormed(events);
    expect(textOf(events)).toBe("Hello from upstream.");
    expect(events.at(-2)?.json.usage).toMatchObject({ input_tokens: 100, costUsdMicros: 128 });
    expect(seen.map(({ path: at }) => at)).toEqual(Array(2).fill("/v1/chat/completions"));
    expect(seen[1]?.body).toMatchObject({
      ...{ model: "up-model", stream: true, stream_options: { include_usage: true } },
      ...{ max_tokens: 100, store: false },
      messages: [
        { role: "system", content: `${developerPrompt}\n\nMine.` },
        { role: "user", content: "say hello" },
      ],
    });
    expect((await own.settled()).monthSpend).toBe(256);
    world.play({ kind: "ok", call: { name: "get", arguments: '{"a":1}' } });
    const tools = [{ name: "get", input_schema: { type: "object" } }];
    const called = await own.stream(path, { ...legacy, tools });
    expectWellFormed(called);
    expect(called.at(-2)?.json.delta.stop_reason).toBe("tool_use");
    world.play({ kind: "ok", break: { how: "destroy", after: 2 } });
    const broken = await own.stream(path, legacy);
    expect(broken.at(-1)?.json.type).toBe("error");
  });

  test("thinking goes to the upstream and back, and not to another account", async () => {
    const seen = world.play({ kind: "ok", encrypted: "sealed-state" });
    const thinking = { type: "adaptive", display: "summarized" };
    const first = await caller.post(path, {
      ...scripted,
      thinking,
      output_config: { effort: "max" },
    });
    expect(seen[0]?.body).toMatchObject({
      ...{ reasoning: { effort: "high", summary: "auto" } },
      include: ["reasoning.encrypted_content"],
    });
    const [block] = first.json.content;
    expect(block).toMatchObject({ type: "thinking", signature: expect.stringMatching(/^gmr1\./) });
    const history = {
      ...{ ...scripted, thinking },
      messages: [...hi, { role: "assistant", content: first.json.content }, ...hi],
    };
    await caller.post(path, history);
    const sent = seen[1]?.body.input as { type: string; encrypted_content?: string }[];
    expect(sent.find(({ type }) => type === "reasoning")).toMatchObject({
      encrypted_content: "sealed-state",
    });
    const other = await world.caller();
    const refused = await other.post(path, history);
    expect(refused.json.error.message).toBe(
      "messages.1.content.0: Invalid `signature` in `thinking` block",
    );
    const streamed = await caller.stream(path, { ...scripted, thinking });
    expect(streamed.map(({ json }) => json.delta?.type)).toContain("signature_delta");
    const hidden = await caller.post(path, scripted);
    expect(hidden.json.content.map(({ type }: { type: string }) => type)).toEqual(["text"]);
  });

  test("a bound above 4,096 falls to what the balance pays for, and a header names it", async () => {
    await using rich = await startWorld({
      catalog: (usual) => ({
        ...usual,
        models: usual.models.map((model) =>
          model.id === "scripted"
            ? { ...model, maxInputTokens: 200_000, maxOutputTokens: 64_000 }
            : model,
        ),
      }),
    });
    const poor = await rich.caller({ usdMicros: 30_000n });
    const seen = rich.play();
    const { status, headers } = await poor.post(path, { ...scripted, max_tokens: 128_000 });
    expect(status).toBe(200);
    const fallen = Number(headers.get("x-genmesh-max-tokens"));
    expect(fallen).toBeGreaterThanOrEqual(4_096);
    expect(fallen).toBeLessThan(7_500);
    expect(seen[0]?.body.max_output_tokens).toBe(fallen);
    const poorer = await rich.caller({ usdMicros: 16_000n });
    expect(errorOf(await poorer.post(path, { ...scripted, max_tokens: 128_000 }))).toBe(
      "402 error billing_error insufficient_balance",
    );
    const kept = await poor.post(path, { ...scripted, max_tokens: 4_096 });
    expect(kept.headers.get("x-genmesh-max-tokens")).toBeNull();
  });

  test("a stop sequence ends the text here", async () => {
    world.play({ kind: "ok", deltas: ["one E", "ND two"] });
    const { json } = await caller.post(path, { ...scripted, stop_sequences: ["END"] });
    expect(json).toMatchObject({
      ...{ content: [{ text: "one " }], stop_reason: "stop_sequence", stop_sequence: "END" },
    });
    const events = await caller.stream(path, { ...scripted, stop_sequences: ["END"] });
    expect(textOf(events)).toBe("one ");
    expect(events.at(-2)?.json.delta.stop_sequence).toBe("END");
  });
});
