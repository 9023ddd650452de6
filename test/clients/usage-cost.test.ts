import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText } from "ai";
import OpenAI from "openai";
import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { startWorld } from "../e2e/world.ts";

// `usage.cost` and `usage.costUsdMicros` are not in OpenAI's own answers. Clients pass them on.

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();
const client = new OpenAI({ baseURL: world.baseUrl, apiKey: caller.key, maxRetries: 0 });
const provider = createOpenAI({ baseURL: world.baseUrl, apiKey: caller.key });
const model = "chat-1";
const chat = { model, messages: [{ role: "user" as const, content: "say hello" }] };
const response = { model, input: "say hello" };

/** The micros of a usage, which must agree with its dollars, and with the ledger's charge for the call. */
async function paidFor(call: () => Promise<unknown>): Promise<number> {
  const before = (await caller.settled()).monthSpend;
  const { cost, costUsdMicros } = (await call()) as { cost: number; costUsdMicros: number };
  const charged = (await caller.settled()).monthSpend - before;
  expect([costUsdMicros, cost]).toEqual([charged, charged / 1_000_000]);
  return charged;
}

async function lastUsageOfChat() {
  const asked = { ...chat, stream: true, stream_options: { include_usage: true } } as const;
  let last: unknown;
  for await (const { usage } of await client.chat.completions.create(asked)) last = usage ?? last;
  return last;
}

test.for<[name: string, call: () => Promise<unknown>]>([
  ["responses.create", async () => (await client.responses.create(response)).usage],
  ["responses.stream", async () => (await client.responses.stream(response).finalResponse()).usage],
  ["chat.completions.create", async () => (await client.chat.completions.create(chat)).usage],
  ["chat.completions.create with stream", lastUsageOfChat],
])("OpenAI's SDK, %s", async ([, call]) => {
  expect(await paidFor(call)).toBeGreaterThan(0);
});

test("the AI SDK on responses, in its raw usage", async () => {
  const asked = { model: provider.responses(model), maxRetries: 0, prompt: "say hello" };
  const whole = async () => (await generateText(asked)).usage.raw;
  expect(await paidFor(whole)).toBeGreaterThan(0);
  const streamed = async () => (await streamText(asked).usage).raw;
  expect(await paidFor(streamed)).toBeGreaterThan(0);
});

test("the AI SDK on chat keeps what OpenAI's usage has; the cost is in the headers of a whole answer", async () => {
  const asked = { model: provider.chat(model), maxRetries: 0, prompt: "say hello" };
  const whole = async () => {
    const { usage, response } = await generateText(asked);
    expect(usage).toMatchObject({ outputTokens: 1, raw: { completion_tokens: 1 } });
    const costUsdMicros = Number(response.headers?.["x-genmesh-cost-usd-micros"]);
    return { costUsdMicros, cost: costUsdMicros / 1_000_000 };
  };
  expect(await paidFor(whole)).toBeGreaterThan(0);
  expect(await streamText(asked).usage).toMatchObject({ outputTokens: 1 });
});

const count = z.number().int();
/** The usage of a response by Open Responses, which has these properties and no rule about others. */
const openResponsesUsage = {
  input_tokens: count,
  output_tokens: count,
  total_tokens: count,
  input_tokens_details: z.object({ cached_tokens: count }),
  output_tokens_details: z.object({ reasoning_tokens: count }),
};

test("Open Responses' schema: its own reader leaves the cost out, one that keeps what it does not know has it", async () => {
  const streamed = await caller.stream("/responses", response);
  const last = JSON.parse(streamed.at(-2)?.data ?? "");
  expect(last.type).toBe("response.completed");
  for (const usage of [
    (await caller.post("/responses", response)).json.usage,
    last.response.usage,
  ]) {
    const read = z.object(openResponsesUsage).parse(usage);
    expect(Object.keys(read).sort()).toEqual(Object.keys(openResponsesUsage).sort());
    const { cost, costUsdMicros } = usage;
    expect(cost).toBeGreaterThan(0);
    expect(costUsdMicros).toBe(Math.round(cost * 1_000_000));
    expect(z.looseObject(openResponsesUsage).parse(usage)).toEqual({
      ...read,
      cost,
      costUsdMicros,
    });
  }
});
