import Anthropic from "@anthropic-ai/sdk";
import { afterAll, expect, test } from "vitest";
import { startAnthropic } from "../support/upstreams/anthropic.ts";
import { chat } from "./catalog.ts";
import { claudeKey, withClaude } from "./claude-world.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

// Tools that Anthropic runs itself, for callers of Messages.

const perToken = (micros: number) => Math.round(micros * 1_000_000);
const pricing = {
  inputUsdMicrosPerMillionTokens: perToken(4),
  cachedInputUsdMicrosPerMillionTokens: perToken(0.2),
  cacheWriteUsdMicrosPerMillionTokens: perToken(5),
  outputUsdMicrosPerMillionTokens: perToken(20),
};
const toolCalls = { web_search: 10_000, web_fetch: 0, code_execution: 4_200 };
const fields = {
  ...{ upstream: "claude", upstreamModel: "up-model", maxInputTokens: 200_000 },
  ...{ maxOutputTokens: 8_000, tools: ["web_search", "code_execution"] },
};

ownWorldOnly();
const double = await startAnthropic({ key: claudeKey });
const world = await startWorld(
  withClaude(double, [
    chat("claude", { ...fields, pricing: { ...pricing, toolCalls, toolCallLimit: 5 } }),
    chat("unpriced", { ...fields, pricing }),
  ]),
);
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await double[Symbol.asyncDispose]();
});

const search = { type: "web_search_20250305", name: "web_search" } as const;
const code = { type: "code_execution_20250825", name: "code_execution" } as const;
const hi = { role: "user", content: "Hi" } as const;
const ask = { model: "claude", max_tokens: 4_000, messages: [hi], tools: [search] };
const call = (id: string, name = "web_search") => ({
  ...{ type: "server_tool_use", id, name, input: { query: "a lamp" } },
});
const result = (id: string, content: unknown) => ({
  ...{ type: "web_search_tool_result", tool_use_id: id, content },
});
const page = {
  ...{ type: "web_search_result", title: "A", url: "https://a.example", page_age: null },
  encrypted_content: "c2VhbGVkIHBhZ2Ugb2YgYSBzZWFyY2g=",
};
const cited = {
  ...{ type: "text", text: "A lamp." },
  citations: [
    {
      ...{ type: "web_search_result_location", cited_text: "A", title: "A" },
      ...{ url: page.url, encrypted_index: "aW5kZXggb2YgYSBwYWdlIG9mIGEgc2VhcmNo" },
    },
  ],
};
const failed = { type: "web_search_tool_result_error", error_code: "unavailable" };
const content = [
  ...[call("srvtoolu_1"), result("srvtoolu_1", [page])],
  ...[call("srvtoolu_2"), result("srvtoolu_2", failed), cited],
];
const searches = (count: number) => ({
  ...{ input_tokens: 12_000, output_tokens: 500 },
  server_tool_use: { web_search_requests: count, web_fetch_requests: 0 },
});
const last = () => double.seen("messages").at(-1) ?? expect.unreachable();

test("its calls are charged as they are reported, whole and streamed", async () => {
  for (const form of ["post", "stream"] as const) {
    const who = await world.caller();
    double.answers.push({ content, usage: searches(3), stop_reason: "pause_turn" });
    const answer = await who[form]("/messages", ask);
    const shown = Array.isArray(answer) ? answer.at(-2)?.json.usage : answer.json.usage;
    // prices.md, example 22.
    expect(shown).toMatchObject({ ...searches(3), costUsdMicros: 88_000 });
    expect((await who.settled()).monthSpend).toBe(88_000);
    expect(last().body.tools).toEqual([{ ...search, max_uses: 5 }]);
  }
});

test("no more is charged than was held", async () => {
  const who = await world.caller();
  const tools = [{ ...search, max_uses: 1 }];
  double.answers.push({ content, usage: { ...searches(200), input_tokens: 1_000 } });
  expect((await who.post("/messages", { ...ask, tools })).status).toBe(200);
  // A window at the price of writes, the bound of the output, and one search.
  expect((await who.settled()).monthSpend).toBe(1_090_000);
});

test("code is charged by the container, and only where the request names it", async () => {
  const ran = { type: "code_execution_tool_result", tool_use_id: "srvtoolu_1", content: {} };
  const made = [call("srvtoolu_1", "code_execution"), ran, { type: "text", text: "A" }];
  for (const [tools, cost] of [
    [[code], 4_200],
    [[search], 0],
  ] as const) {
    const who = await world.caller();
    double.answers.push({ content: made, usage: { input_tokens: 0, output_tokens: 0 } });
    const { json } = await who.post("/messages", { ...ask, tools });
    expect(json.content).toEqual(made);
    expect((await who.settled()).monthSpend).toBe(cost);
  }
});

test("of a stream that breaks off, searches count that did not fail", async () => {
  // Before the second search has its result, and behind that.
  for (const [cutAfter, count] of [
    [15, 2],
    [18, 1],
  ] as const) {
    const who = await world.caller();
    double.answers.push({ content, cutAfter });
    const events = await who.stream("/messages", ask);
    expect(events.at(-1)?.json.type).toBe("error");
    const starts = events.filter(({ json }) => json?.type === "content_block_start");
    expect(starts.map(({ json }) => json.content_block.type)).toContain("web_search_tool_result");
    await who.settled();
    const id = events[0]?.json.message.id;
    const { json } = await who.get(`/generation?id=${id}`);
    expect(json.data.num_search_results).toBe(count);
  }
});

test("its blocks go back byte for byte, and to no other account", async () => {
  const who = await world.caller();
  double.answers.push({ content });
  const { json } = await who.post("/messages", ask);
  expect(json.content).toEqual(content);
  const next = {
    ...ask,
    messages: [hi, { role: "assistant", content: json.content }, hi],
  };
  expect((await who.post("/messages", next)).status).toBe(200);
  expect(last().body.messages[1].content).toEqual(content);
  const before = double.seen("messages").length;
  const other = await (await world.caller()).post("/messages", next);
  expect([other.status, other.json.error.code]).toEqual([400, "invalid_value"]);
  expect(double.seen("messages")).toHaveLength(before);
});

test("one without a price, or of a family that the model does not list, is refused by name", async () => {
  const who = await world.caller();
  const fetch = { type: "web_fetch_20250910", name: "web_fetch" };
  const before = double.seen("messages").length;
  for (const [model, tool, words] of [
    ["unpriced", search, "The model has no price for calls of 'web_search'. Leave it out."],
    ["claude", fetch, "The model takes these tools: web_search, code_execution."],
    ["chat-1", search, "The model takes tools of the type 'custom' alone. Leave this one out."],
  ] as const) {
    const { status, json } = await who.post("/messages", { ...ask, model, tools: [tool] });
    expect([status, json.error.code, json.error.param, json.error.message]).toEqual([
      ...[400, "unsupported_parameter", "tools[0].type", words],
    ]);
  }
  expect(double.seen("messages")).toHaveLength(before);
  expect(await who.balance()).toMatchObject({ reserved: 0, monthSpend: 0 });
});

test("Anthropic's own client reads them from a stream, and sends them back", async () => {
  const who = await world.caller();
  const client = new Anthropic({
    ...{ apiKey: who.key, maxRetries: 0, baseURL: who.baseUrl.replace(/\/v1$/, "") },
  });
  double.answers.push({ content, usage: searches(1) });
  const message = await client.messages.stream({ ...ask, messages: [hi] }).finalMessage();
  expect(message.content).toEqual(content);
  expect(message.usage.server_tool_use).toEqual(searches(1).server_tool_use);
  const messages = [hi, { role: "assistant" as const, content: message.content }, hi];
  const end = await client.messages.create({ ...ask, messages });
  expect(end.stop_reason).toBe("end_turn");
  expect(last().body.messages[1].content).toEqual(content);
});
