import { describe, expect, test } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import { UnseenNotes, unseenOf } from "./judging/hidden-output.ts";
import { usageIn } from "./usage.ts";
import { UsageNote } from "./usage-note.ts";

const sums = { input_tokens: 1_000, output_tokens: 100 };
const chatSums = { prompt_tokens: 1_000, completion_tokens: 100 };

describe("parts of a usage that have prices of their own", () => {
  test.each<[string, JsonObject, object | undefined]>([
    [
      "plain numbers are none",
      {
        ...sums,
        input_tokens_details: { cached_tokens: 5, audio_tokens: 0, cache_write_tokens: null },
        output_tokens_details: { reasoning_tokens: 7 },
      },
      undefined,
    ],
    [
      "OpenAI's writes, and the long ones among them",
      {
        ...sums,
        input_tokens_details: {
          cached_tokens: 5,
          cache_write_tokens: 900,
          cache_write_tokens_details: { ttl_30m_tokens: 600, ttl_12h_tokens: 300 },
        },
      },
      { cacheWrite: 900, cacheWriteLong: 300 },
    ],
    [
      "writes of which no part is long",
      {
        ...sums,
        input_tokens_details: {
          cache_write_tokens_details: { ttl_30m_tokens: 600, ttl_12h_tokens: 0 },
        },
      },
      { cacheWrite: 600, cacheWriteLong: 0 },
    ],
    [
      "what a chat hears, sees and says",
      {
        ...chatSums,
        prompt_tokens_details: {
          audio_tokens: 500,
          image_tokens: 60,
          video_tokens: 7,
          cached_tokens_details: { audio_tokens: 80 },
        },
        completion_tokens_details: { audio_tokens: 30 },
      },
      { audioInput: 500, cachedAudioInput: 80, imageInput: 67, audioOutput: 30 },
    ],
    [
      "images that a tool drew, and its searches",
      {
        ...sums,
        tool_usage: { image_gen: { output_tokens: 90 }, web_search: { num_requests: 2 } },
      },
      { imageOutput: 90, toolCalls: { web_search: 2 } },
    ],
    [
      "OpenRouter's searches and dollars",
      { ...chatSums, server_tool_use_details: { web_search_requests: 3 }, cost: 0.0012345 },
      { toolCalls: { web_search: 3 }, costUsdMicros: 1_235 },
    ],
    [
      "dollars that another float writes",
      { ...chatSums, cost: 0.1 + 0.2 },
      { costUsdMicros: 300_000 },
    ],
    [
      "OpenRouter with a key of the operator's",
      {
        ...chatSums,
        cost: 0.00001,
        is_byok: true,
        cost_details: { upstream_inference_cost: 0.002 },
      },
      { costUsdMicros: 2_010 },
    ],
    [
      "xAI's ticks and tools",
      { ...chatSums, cost_in_usd_ticks: 37_756_001, num_server_side_tools_used: 3 },
      { unnamedCalls: 3, costUsdMicros: 3_776 },
    ],
    ["a genmesh's figure", { ...sums, cost: 0.5, costUsdMicros: 7 }, { costUsdMicros: 7 }],
    [
      "searches in the words of Messages",
      { ...sums, server_tool_use: { web_search_requests: 1, web_fetch_requests: 4 } },
      { toolCalls: { web_search: 1, web_fetch: 4 } },
    ],
    ["a tier of the usage", { ...sums, service_tier: "standard" }, { servedTier: "standard" }],
    ["a tier that is no name", { ...sums, service_tier: "a b" }, undefined],
    [
      "a number that is none",
      { ...sums, input_tokens_details: { cache_write_tokens: "many" } },
      { cacheWrite: Number.NaN },
    ],
  ])("%s", (_name, usage, details) => {
    expect(usageIn({ usage })?.usage.details).toEqual(details);
  });

  test("the tier stands beside the usage, in an answer, a chunk and an event", () => {
    const details = { servedTier: "priority" };
    const service_tier = "priority";
    for (const answer of [
      { service_tier, usage: chatSums },
      { response: { service_tier, usage: sums } },
      { service_tier, x_groq: { usage: chatSums } },
    ]) {
      expect(usageIn(answer)?.usage.details).toEqual(details);
    }
  });

  test("32: reasoning beside the output of a chat is output", () => {
    const usage = {
      prompt_tokens: 1_000,
      completion_tokens: 50,
      total_tokens: 1_500,
      prompt_tokens_details: { cached_tokens: 200 },
      completion_tokens_details: { reasoning_tokens: 450 },
    };
    expect(usageIn({ usage })?.usage).toMatchObject({
      inputTokens: 1_000,
      cachedInputTokens: 200,
      outputTokens: 500,
    });
  });
});

describe("several reports", () => {
  const writes = (cached_tokens: number, cache_write_tokens: number) => ({
    usage: { ...sums, input_tokens_details: { cached_tokens, cache_write_tokens } },
  });
  const noted = (...events: JsonObject[]) => {
    const note = new UsageNote();
    for (const event of events) note.note(event, true);
    return note.reported;
  };
  test("the larger number of each counts", () => {
    const first = { usage: { ...sums, input_tokens_details: { cache_write_tokens: 900 } } };
    const tools = { tool_usage: { web_search: { num_requests: 1 } } };
    const last = { usage: { ...sums, output_tokens: 400, cost: 0.1 }, ...tools };
    expect(noted(first, last)).toMatchObject({
      outputTokens: 400,
      details: { cacheWrite: 900, toolCalls: { web_search: 1 }, costUsdMicros: 100_000 },
    });
  });
  test("numbers of two reports are never together more than one of them says", () => {
    expect(noted(writes(0, 900), writes(900, 0))).toEqual({
      inputTokens: 1_000,
      cachedInputTokens: 900,
      outputTokens: 100,
      details: {},
    });
  });
});

describe("calls of the upstream's tools", () => {
  const call = (id: string, more: JsonObject) => ({ id, ...more });
  const items: JsonObject[] = [
    call("1", { type: "web_search_call", action: { type: "search" } }),
    call("2", { type: "web_search_call", action: { type: "open_page" } }),
    call("3", { type: "web_search_call" }),
    call("4", { type: "x_search_call" }),
    call("5", { type: "file_search_call" }),
    call("6", { type: "code_interpreter_call", container_id: "a" }),
    call("7", { type: "code_interpreter_call", container_id: "a" }),
    call("8", { type: "code_interpreter_call", container_id: "b" }),
    call("9", { type: "function_call" }),
    call("10", { type: "constructor_call" }),
    call("11", { type: "mcp_list_tools" }),
  ];
  const counts = {
    ...{ web_search: 2, x_search: 1, file_search: 1, code_interpreter: 2 },
    ["constructor"]: 1,
  };
  const streamed = (...events: JsonObject[]) => {
    const notes = new UnseenNotes();
    for (const event of events) notes.noteEvent(event);
    return notes.toolCalls;
  };
  const done = items.map((item) => ({ type: "response.output_item.done", item }));
  test("those of a whole answer", () => {
    expect(unseenOf({ output: items }).toolCalls).toEqual(counts);
    expect(unseenOf({ output: [] }).toolCalls).toBeUndefined();
  });
  test("those of a stream count once, whether its end lists them or not", () => {
    const added = items.map((item) => ({ type: "response.output_item.added", item }));
    const end = { type: "response.completed", response: { output: items } };
    expect(streamed(...added, ...done, end)).toEqual(counts);
    expect(streamed(...added, ...done)).toEqual(counts);
    expect(streamed(end)).toEqual(counts);
    expect(streamed(...added)).toBeUndefined();
  });
  test("an answer with endless kinds of them has a few", () => {
    const many = Array.from({ length: 99 }, (_, n) => ({ type: `tool${n}_call` }));
    expect(Object.keys(unseenOf({ output: many }).toolCalls ?? {})).toHaveLength(8);
  });
});
