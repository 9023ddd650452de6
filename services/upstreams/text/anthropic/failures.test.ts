import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { AutoCache } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { testRequest } from "../../../../test/support/text-requests.ts";
import { startUpstreamWorld, type UpstreamWorld } from "../../../../test/support/upstream-world.ts";
import {
  type AnthropicDouble,
  anthropicAnswers,
  type Made,
  startAnthropic,
} from "../../../../test/support/upstreams/anthropic.ts";
import { usualBetas } from "../../anthropic/capabilities.ts";

let double: AnthropicDouble;
let world: UpstreamWorld;

beforeEach(async () => {
  double = await startAnthropic();
  world = await startUpstreamWorld({
    secrets: (name) => (name === "ANTHROPIC_KEY" ? double.key : undefined),
  });
});
afterEach(async () => {
  await world[Symbol.asyncDispose]();
  await double[Symbol.asyncDispose]();
});

/** More than any answer here has. */
const outputBound = { tokens: 4_096, count: async () => 0 };
type Changes = Parameters<UpstreamWorld["at"]>[1];
const upstream = (changes: Changes = {}) =>
  world.at("ANTHROPIC", {
    baseUrl: double.baseUrl,
    apiKeyEnv: "ANTHROPIC_KEY",
    betas: [...usualBetas],
    ...changes,
  });
const tools = [
  { type: "function", name: "look" },
  { type: "custom", name: "patch" },
  { type: "namespace", name: "files", tools: [{ type: "function", name: "read" }] },
];
const ask = (operation: "responses" | "chat", fields = {}, changes: Changes = {}) =>
  testRequest(operation, [upstream(changes)], { fields, outputBound });

/** The same answer whole and streamed, as the last whole object. */
async function both(made: Made, fields = {}) {
  double.usual = made;
  const whole = await world.json(ask("responses", fields));
  const streamed = await world.stream(ask("responses", fields));
  const last = streamed.data.at(-1);
  const plain = (output: { id?: string }[]) => output.map(({ id: _, ...item }) => item);
  expect(plain(last.response.output)).toEqual(plain(whole.body.output));
  expect(last.response.usage).toEqual(whole.body.usage);
  expect(last.response.status).toBe(whole.body.status);
  expect(last.type).toBe(`response.${whole.body.status}`);
  expect(streamed.events.at(-1)?.usage).toEqual(whole.answer.usage);
  expect(streamed.data.map(({ sequence_number: n }) => n)).toEqual(streamed.data.map((_, n) => n));
  return { whole, streamed, output: plain(whole.body.output) as object[] };
}

describe("a request", () => {
  test("has the key, the version, a bound, and an account that nobody knows", async () => {
    await world.json(ask("responses", { max_output_tokens: 77 }));
    const [{ headers, body, path } = expect.unreachable()] = double.requests;
    expect(path).toBe("/v1/messages");
    expect(headers).toMatchObject({
      "x-api-key": double.key,
      "anthropic-version": "2023-06-01",
    });
    expect(headers.authorization).toBeUndefined();
    expect(headers["anthropic-beta"]).toBeUndefined();
    expect(body).toEqual({
      ...{ model: "up-model", max_tokens: 77, stream: false },
      system: [{ type: "text", text: "SECRET PROMPT\n\nBe kind." }],
      messages: [{ role: "user", content: [{ type: "text", text: "Hi" }] }],
      metadata: { user_id: expect.stringMatching(/^[0-9a-f]{64}$/) },
    });
  });

  test("always has a bound: that of the hold, where the caller has none", async () => {
    await world.json(ask("responses"));
    expect(double.requests[0]?.body.max_tokens).toBe(outputBound.tokens);
  });

  test("ends at the sequences of a chat, except for blank ones", async () => {
    const stop = ["END", "\n\n"];
    double.usual = { content: [{ type: "text", text: "One\n\nTwo" }], stop_reason: "end_turn" };
    const { body } = await world.json(ask("chat", { stop }));
    expect(double.requests[0]?.body.stop_sequences).toEqual(["END"]);
    expect(body.choices[0]).toMatchObject({ message: { content: "One" }, finish_reason: "stop" });
  });

  test.each([
    [AutoCache.UNSPECIFIED, { tools }, undefined],
    [AutoCache.SHORT, { tools }, { type: "ephemeral" }],
    [AutoCache.LONG, { prompt_cache_key: "k" }, { type: "ephemeral", ttl: "1h" }],
    [AutoCache.SHORT, {}, undefined],
  ])("asks for a cache where it may be read: %s %o", async (autoCache, fields, control) => {
    await world.json(ask("responses", fields, { autoCache }));
    expect(double.requests[0]?.body.cache_control).toEqual(control);
  });

  test("names the properties without effect, in the caller's words", async () => {
    const ignored: string[] = [];
    const onIgnored = (names: readonly string[]) => void ignored.push(...names);
    await world.json({ ...ask("responses", { user: "u", temperature: 1, tools }), onIgnored });
    expect(ignored.splice(0)).toEqual(["user", "temperature"]);
    const fields = { seed: 1, verbosity: "low", stop: "X", max_tokens: 5 };
    await world.json({ ...ask("chat", fields), onIgnored });
    expect(ignored).toEqual(["seed", "text.verbosity"]);
  });
});

describe("usage", () => {
  const usage = {
    ...{ input_tokens: 100, cache_read_input_tokens: 20_000, cache_creation_input_tokens: 5_000 },
    cache_creation: { ephemeral_5m_input_tokens: 3_000, ephemeral_1h_input_tokens: 2_000 },
    ...{ output_tokens: 300, output_tokens_details: { thinking_tokens: 200 } },
  };

  test("counts what was read and written within the input, and keeps the split of the first report", async () => {
    const { whole } = await both({ content: [{ type: "text", text: "A" }], usage });
    expect(whole.answer.usage).toEqual({
      ...{ inputTokens: 25_100, cachedInputTokens: 20_000, outputTokens: 300 },
      reasoningTokens: 200,
      details: { cacheWrite: 5_000, cacheWriteLong: 2_000, servedTier: "standard" },
    });
    expect(whole.body.usage).toMatchObject({
      ...{ input_tokens: 25_100, output_tokens: 300, total_tokens: 25_400 },
      input_tokens_details: { cached_tokens: 20_000, cache_write_tokens: 5_000 },
      output_tokens_details: { reasoning_tokens: 200 },
    });
  });

  test.each([
    ["speed", { speed: "fast" }, { details: { servedTier: "fast" } }],
    [
      "searches",
      { server_tool_use: { web_search_requests: 3 } },
      { details: { toolCalls: { web_search: 3 } } },
    ],
    [
      "turns of the model's own",
      {
        iterations: [
          { type: "message", input_tokens: 100, output_tokens: 300 },
          { type: "compaction", input_tokens: 180_000, output_tokens: 3_500 },
        ],
      },
      { inputTokens: 205_100, outputTokens: 3_800 },
    ],
    ["what is no number", { input_tokens: "many" }, { inputTokens: Number.NaN }],
  ])("%s", async (_name, more, reported) => {
    double.usual = { content: [{ type: "text", text: "A" }], usage: { ...usage, ...more } };
    const { answer } = await world.json(ask("responses"));
    expect(answer.usage).toMatchObject(reported);
    const { events } = await world.stream(ask("responses"));
    expect(events.at(-1)?.usage).toMatchObject(reported);
  });
});

describe("a failure", () => {
  const asked = () => ask("responses");
  test.each([
    ["credit", ErrorReason.MODEL_REQUEST_FAILED],
    ["limits", ErrorReason.MODEL_REQUEST_FAILED],
    ["billing", ErrorReason.MODEL_REQUEST_FAILED],
    ["key", ErrorReason.MODEL_REQUEST_FAILED],
    ["forbidden", ErrorReason.MODEL_REQUEST_FAILED],
    ["noModel", ErrorReason.MODEL_REQUEST_FAILED],
    ["tooLarge", ErrorReason.MODEL_REQUEST_FAILED],
    ["rate", ErrorReason.MODEL_REQUEST_FAILED],
    ["overloaded", ErrorReason.MODEL_REQUEST_FAILED],
    ["down", ErrorReason.MODEL_REQUEST_FAILED],
    ["tooLong", ErrorReason.CONTEXT_LENGTH_EXCEEDED],
    ["noRoom", ErrorReason.CONTEXT_LENGTH_EXCEEDED],
    ["filtered", ErrorReason.CONTENT_POLICY_VIOLATION],
    ["wrong", ErrorReason.INVALID_VALUE],
  ] as const)("%s", async (name, reason) => {
    double.always("messages", anthropicAnswers[name]);
    expect(await world.reasonFrom(asked())).toBe(reason);
  });

  test.each(["credit", "limits", "billing", "key", "rate", "overloaded", "down"] as const)(
    "%s leads to the next upstream",
    async (name) => {
      double.always("messages", anthropicAnswers[name]);
      const request = testRequest("responses", [upstream(), world.at("OPENAI")], { outputBound });
      expect((await world.json(request)).body.output[0].content[0].text).toBe(
        "Hello from upstream.",
      );
    },
  );

  test.each(["responses", "chat"] as const)("within a stream of %s", async (operation) => {
    double.usual = { content: [{ type: "text", text: "A long text." }], errorAt: 0 };
    expect(await world.reasonFrom({ ...ask(operation), stream: true })).toBe(
      ErrorReason.MODEL_REQUEST_FAILED,
    );
    const other = { ...ask(operation), upstreams: [upstream(), world.at("OPENAI")] };
    expect((await world.stream(other)).events.at(-1)?.ending).toBe("completed");
    double.usual = { ...double.usual, errorAt: 4 };
    expect((await world.stream(ask(operation))).events.at(-1)?.ending).toBe("failed");
  });
});
