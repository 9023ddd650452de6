import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText, type ToolSet, tool } from "ai";
import OpenAI from "openai";
import type { ChatCompletion } from "openai/resources/chat/completions";
import type { Response } from "openai/resources/responses/responses";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";
import {
  begun,
  chunk,
  completion,
  formAsked,
  playForm,
  type Said,
  used,
} from "../support/forms/form.ts";
import { answerForms } from "../support/forms/index.ts";

ownWorldOnly();
const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller({ usdMicros: 1_000_000_000n });
const client = new OpenAI({ baseURL: world.baseUrl, apiKey: caller.key, maxRetries: 0 });
const provider = createOpenAI({ baseURL: world.baseUrl, apiKey: caller.key });
const modelOf = { chat: "legacy", responses: "scripted" } as const;

beforeEach(() => {
  world.play((seen) => {
    const form = formAsked(answerForms, seen);
    return form ? playForm(form, seen) : { kind: "status", status: 400 };
  });
});

function saidInChat({ choices }: ChatCompletion): Said {
  const [choice] = choices;
  const calls = (choice?.message.tool_calls ?? []).map((call): [string, string] =>
    call.type === "function" ? [call.function.name, call.function.arguments] : [call.type, ""],
  );
  const finish = choice?.finish_reason as Said["finish"];
  return { text: choice?.message.content ?? "", calls, finish };
}

function saidInResponse({ output, output_text: text }: Response): Pick<Said, "text" | "calls"> {
  const calls = output.flatMap((item): [string, string][] =>
    item.type === "function_call" ? [[item.name, item.arguments]] : [],
  );
  return { text, calls };
}

const city = tool({ inputSchema: z.object({ city: z.string().optional() }) });
// Two tools without a context of their own. The package's types show that only where a tool is made in the call.
const tools = { look: city, find: city } as unknown as ToolSet;
const forms = answerForms.map((form) => [form.name, form] as const);

describe.for(forms)("%s", ([name, { upstream, says }]) => {
  const model = modelOf[upstream];
  const messages = [{ role: "user" as const, content: name }];
  const { text, calls } = says;

  test("the OpenAI SDK builds all of it in chat", async () => {
    const stream = client.chat.completions.stream({ model, messages });
    expect(saidInChat(await stream.finalChatCompletion())).toEqual(says);
    expect(saidInChat(await client.chat.completions.create({ model, messages }))).toEqual(says);
  });

  test("the OpenAI SDK builds all of it in responses", async ({ skip }) => {
    skip(upstream === "chat", "needs an upstream of the protocol");
    const stream = client.responses.stream({ model, input: name });
    expect(saidInResponse(await stream.finalResponse())).toEqual({ text, calls });
    const response = await client.responses.create({ model, input: name });
    expect(saidInResponse(response)).toEqual({ text, calls });
  });

  const languages =
    upstream === "chat"
      ? [provider.chat(model)]
      : [provider.chat(model), provider.responses(model)];
  test.for(languages)("the AI SDK builds all of it", async (language) => {
    const asked = { model: language, prompt: name, tools, maxRetries: 0 };
    const called = calls.map(([toolName, args]) => ({ toolName, input: JSON.parse(args || "{}") }));
    const whole = await generateText(asked);
    expect(whole.text).toBe(text);
    expect(whole.toolCalls).toMatchObject(called);
    expect(whole.toolCalls).toHaveLength(called.length);
    const streamed = streamText(asked);
    expect(await streamed.text).toBe(text);
    expect(await streamed.toolCalls).toMatchObject(called);
    expect(await streamed.toolCalls).toHaveLength(called.length);
    expect(await streamed.finishReason).toBe(says.finish.replace("_", "-"));
  });
});

describe("usage in another form", () => {
  const usage = {
    prompt_tokens: 1000,
    completion_tokens: 10,
    total_tokens: 1510,
    prompt_cache_hit_tokens: 900,
    completion_tokens_details: { reasoning_tokens: 500 },
  };
  const messages = [{ role: "user" as const, content: "Hi" }];
  const said = { prompt_tokens: 1000, completion_tokens: 510, total_tokens: 1510 };
  beforeEach(() => {
    world.play(({ body }) =>
      body.stream
        ? { kind: "events", events: [begun, chunk({ content: "Hi" }, "stop"), { ...used, usage }] }
        : { kind: "json", body: completion({ content: "Hi" }, "stop", usage) },
    );
  });

  test("adds up in the SDKs", async () => {
    const model = "legacy";
    const whole = await client.chat.completions.create({ model, messages });
    expect(whole.usage).toMatchObject({ ...said, prompt_tokens_details: { cached_tokens: 900 } });
    const stream_options = { include_usage: true };
    const stream = client.chat.completions.stream({ model, messages, stream_options });
    expect(await stream.totalUsage()).toMatchObject(said);
    const { usage: ofText } = await generateText({ model: provider.chat(model), prompt: "Hi" });
    expect(ofText).toMatchObject({ inputTokens: 1000, outputTokens: 510, totalTokens: 1510 });
  });
});

test("events where JSON was asked for", async () => {
  const events = [begun, chunk({ content: "one " }, ""), chunk({ content: "two" }, "stop"), used];
  world.play({ kind: "events", events });
  const messages = [{ role: "user" as const, content: "Hi" }];
  const whole = await client.chat.completions.create({ model: "legacy", messages });
  expect(saidInChat(whole)).toEqual({ text: "one two", calls: [], finish: "stop" });
  const { text } = await generateText({ model: provider.chat("legacy"), prompt: "Hi" });
  expect(text).toBe("one two");
});
