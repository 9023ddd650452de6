import { afterAll, describe, expect, test } from "vitest";
import { begun, chunk, completion, used } from "../support/forms/form.ts";
import { chat, pricing } from "./catalog.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

ownWorldOnly();
// A token of input costs 1 micro, a cached one 0.1, one of output 10.
const changes = {
  pricing: {
    ...pricing,
    cachedInputUsdMicrosPerMillionTokens: 100_000,
    outputUsdMicrosPerMillionTokens: 10_000_000,
  },
};
const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    models: [
      ...usual.models,
      chat("native", { upstream: "legacy", ...changes }),
      chat("other", changes),
    ],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller({ usdMicros: 1_000_000_000n });

interface Told {
  input: number;
  cached: number;
  output: number;
  costUsdMicros: number;
}

const cached = (tokens: number, costUsdMicros: number): Told => ({
  input: 1000,
  cached: tokens,
  output: 10,
  costUsdMicros,
});
const thought: Told = { input: 1000, cached: 0, output: 510, costUsdMicros: 6100 };

/** Usage in the words of Chat Completions, and its sums. */
const usages: [name: string, usage: Record<string, unknown>, told: Told][] = [
  [
    "DeepSeek's cache",
    { prompt_cache_hit_tokens: 900, prompt_cache_miss_tokens: 100 },
    cached(900, 290),
  ],
  ["Kimi's cache", { cached_tokens: 900 }, cached(900, 290)],
  [
    "a cache beside details that are null",
    { cached_tokens: 900, prompt_tokens_details: null },
    cached(900, 290),
  ],
  [
    "a cache beside details without it",
    {
      prompt_cache_hit_tokens: 900,
      prompt_tokens_details: { audio_tokens: 0, cached_tokens: null },
    },
    cached(900, 290),
  ],
  [
    "a cache in OpenAI's place before all others",
    { cached_tokens: 900, prompt_tokens_details: { cached_tokens: 500 } },
    cached(500, 650),
  ],
  ["a cache above the input", { prompt_cache_hit_tokens: 5000 }, cached(1000, 200)],
  [
    "xAI's reasoning",
    { completion_tokens_details: { reasoning_tokens: 500 }, total_tokens: 1510 },
    thought,
  ],
  ["reasoning above the output", { completion_tokens_details: { reasoning_tokens: 500 } }, thought],
  ["Gemini's reasoning, in the total alone", { total_tokens: 1510 }, thought],
  [
    "OpenAI's reasoning",
    {
      completion_tokens: 510,
      completion_tokens_details: { reasoning_tokens: 500 },
      total_tokens: 1510,
    },
    thought,
  ],
];

const otherNames: Readonly<Record<string, string>> = {
  prompt_tokens: "input_tokens",
  completion_tokens: "output_tokens",
  prompt_tokens_details: "input_tokens_details",
  completion_tokens_details: "output_tokens_details",
};
const inResponses = (usage: object) =>
  Object.fromEntries(
    Object.entries(usage).map(([name, value]) => [otherNames[name] ?? name, value]),
  );

const message = {
  type: "message",
  id: "msg_1",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text: "one two", annotations: [] }],
};

describe.for(usages)("%s", ([, more, told]) => {
  const usage = { prompt_tokens: 1000, completion_tokens: 10, ...more };
  const response = { id: "r", status: "completed", output: [message], usage: inResponses(usage) };
  const play = () =>
    world.play(({ path, body }) => {
      if (path.endsWith("/chat/completions")) {
        return body.stream
          ? {
              kind: "events",
              events: [begun, chunk({ content: "one two" }, "stop"), { ...used, usage }],
            }
          : { kind: "json", body: completion({ content: "one two" }, "stop", usage) };
      }
      return body.stream
        ? { kind: "events", events: [{ type: "response.completed", response }] }
        : { kind: "json", body: response };
    });

  const content = "Hi";
  const asked = { messages: [{ role: "user", content }] };
  const streamed = { ...asked, stream_options: { include_usage: true } };
  // biome-ignore lint/suspicious/noExplicitAny: usage of either protocol.
  const ways: Record<string, () => Promise<any>> = {
    "chat JSON": async () =>
      (await caller.post("/chat/completions", { model: "native", ...asked })).json.usage,
    "chat stream": async () =>
      (await caller.stream("/chat/completions", { model: "native", ...streamed })).at(-2)?.json
        .usage,
    "translated JSON": async () =>
      (await caller.post("/chat/completions", { model: "other", ...asked })).json.usage,
    "translated stream": async () =>
      (await caller.stream("/chat/completions", { model: "other", ...streamed })).at(-2)?.json
        .usage,
    "responses JSON": async () =>
      (await caller.post("/responses", { model: "other", input: content })).json.usage,
    "responses stream": async () =>
      (await caller.stream("/responses", { model: "other", input: content })).at(-2)?.json.response
        .usage,
    compact: async () =>
      (await caller.post("/responses/compact", { model: "other", input: content })).json.usage,
  };

  test.for(Object.entries(ways))("%s: is charged, and shown in OpenAI's form", async ([, ask]) => {
    play();
    const before = await caller.settled();
    const shown = await ask();
    const { available } = await caller.settled();
    expect(before.available - available).toBe(told.costUsdMicros);
    const {
      prompt_tokens: input = shown.input_tokens,
      completion_tokens: output = shown.output_tokens,
    } = shown;
    const details = shown.prompt_tokens_details ?? shown.input_tokens_details ?? {};
    expect({ input, output, cached: details.cached_tokens ?? 0 }).toEqual({
      input: told.input,
      output: told.output,
      cached: told.cached,
    });
    expect(shown.total_tokens).toBe(told.input + told.output);
  });
});
