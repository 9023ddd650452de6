import { describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { AutoCache } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { testRequest } from "../../../../test/support/text-requests.ts";
import { anthropicAnswers, type Made } from "../../../../test/support/upstreams/anthropic.ts";
import {
  askAt,
  bothAt,
  type Changes,
  eachWithAnthropic,
  outputBound,
  tools,
  upstreamAt,
} from "./world.fixture.ts";

const here = eachWithAnthropic();
const ask = (operation: "responses" | "chat", fields: JsonObject = {}, changes: Changes = {}) =>
  askAt(here, operation, { fields, changes });
const both = (made: Made, fields: JsonObject = {}) => bothAt(here, made, fields);

describe("a request", () => {
  test("has the key, the version, a bound, and an account that nobody knows", async () => {
    await here.world.json(ask("responses", { max_output_tokens: 77 }));
    const [{ headers, body, path } = expect.unreachable()] = here.double.requests;
    expect(path).toBe("/v1/messages");
    expect(headers).toMatchObject({
      "x-api-key": here.double.key,
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
    await here.world.json(ask("responses"));
    expect(here.double.requests[0]?.body.max_tokens).toBe(outputBound.tokens);
  });

  test("ends at the sequences of a chat, except for blank ones", async () => {
    const stop = ["END", "\n\n"];
    here.double.usual = {
      content: [{ type: "text", text: "One\n\nTwo" }],
      stop_reason: "end_turn",
    };
    const { body } = await here.world.json(ask("chat", { stop }));
    expect(here.double.requests[0]?.body.stop_sequences).toEqual(["END"]);
    expect(body.choices[0]).toMatchObject({ message: { content: "One" }, finish_reason: "stop" });
  });

  test.each([
    [AutoCache.UNSPECIFIED, { tools }, undefined],
    [AutoCache.SHORT, { tools }, { type: "ephemeral" }],
    [AutoCache.LONG, { prompt_cache_key: "k" }, { type: "ephemeral", ttl: "1h" }],
    [AutoCache.SHORT, {}, undefined],
  ])("asks for a cache where it may be read: %s %o", async (autoCache, fields, control) => {
    await here.world.json(ask("responses", fields, { autoCache }));
    expect(here.double.requests[0]?.body.cache_control).toEqual(control);
  });

  test("names the properties without effect, in the caller's words", async () => {
    const ignored: string[] = [];
    const onIgnored = (names: readonly string[]) => void ignored.push(...names);
    await here.world.json({ ...ask("responses", { user: "u", temperature: 1, tools }), onIgnored });
    expect(ignored.splice(0)).toEqual(["user", "temperature"]);
    const fields = { seed: 1, verbosity: "low", stop: "X", max_tokens: 5 };
    await here.world.json({ ...ask("chat", fields), onIgnored });
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
    here.double.usual = { content: [{ type: "text", text: "A" }], usage: { ...usage, ...more } };
    const { answer } = await here.world.json(ask("responses"));
    expect(answer.usage).toMatchObject(reported);
    const { events } = await here.world.stream(ask("responses"));
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
    here.double.always("messages", anthropicAnswers[name]);
    expect(await here.world.reasonFrom(asked())).toBe(reason);
  });

  test.each(["credit", "limits", "billing", "key", "rate", "overloaded", "down"] as const)(
    "%s leads to the next upstream",
    async (name) => {
      here.double.always("messages", anthropicAnswers[name]);
      const request = testRequest("responses", [upstreamAt(here), here.world.at("OPENAI")], {
        outputBound,
      });
      expect((await here.world.json(request)).body.output[0].content[0].text).toBe(
        "Hello from upstream.",
      );
    },
  );

  test.each(["responses", "chat"] as const)("within a stream of %s", async (operation) => {
    here.double.usual = { content: [{ type: "text", text: "A long text." }], errorAt: 0 };
    expect(await here.world.reasonFrom({ ...ask(operation), stream: true })).toBe(
      ErrorReason.MODEL_REQUEST_FAILED,
    );
    const other = { ...ask(operation), upstreams: [upstreamAt(here), here.world.at("OPENAI")] };
    expect((await here.world.stream(other)).events.at(-1)?.ending).toBe("completed");
    here.double.usual = { ...here.double.usual, errorAt: 4 };
    expect((await here.world.stream(ask(operation))).events.at(-1)?.ending).toBe("failed");
  });
});
