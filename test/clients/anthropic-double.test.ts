import Anthropic from "@anthropic-ai/sdk";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { anthropicAnswers, startAnthropic } from "../support/upstreams/anthropic.ts";

// The double of Anthropic's API answers Anthropic's own client as the API does.

const double = await startAnthropic();
afterAll(() => double[Symbol.asyncDispose]());
beforeEach(() => {
  double.usual = { content: [{ type: "text", text: "Hello from upstream." }] };
});
const client = new Anthropic({ apiKey: double.key, baseURL: double.origin, maxRetries: 0 });
const model = "up-model";
const tools: Anthropic.Tool[] = [{ name: "look", input_schema: { type: "object" } }];
const hi: Anthropic.MessageParam = { role: "user", content: "Hi" };

test("whole, and as a stream whose message is the same", async () => {
  const thinking = { type: "thinking", thinking: "I must look.", signature: "c2ln" };
  const use = { type: "tool_use", id: "toolu_1", name: "look", input: { at: { deep: [1, 2] } } };
  const sealed = { type: "redacted_thinking", data: "ZGF0YQ==" };
  const usage = { cache_read_input_tokens: 7, output_tokens: 50 };
  const content = [thinking, sealed, { type: "text", text: "Let me look, then." }, use];
  double.usual = { content, usage };
  const asked = { model, max_tokens: 100, messages: [hi], tools };
  const whole = await client.messages.create(asked);
  expect(whole).toMatchObject({ content, stop_reason: "tool_use", usage });
  const stream = client.messages.stream(asked);
  const texts: string[] = [];
  stream.on("text", (text) => texts.push(text));
  const last = await stream.finalMessage();
  expect(last).toMatchObject({
    content,
    stop_reason: "tool_use",
    usage: { input_tokens: 10, ...usage },
  });
  expect(texts.join("")).toBe("Let me look, then.");
});

test("a loop of tools: thinking goes back behind the same turns alone", async () => {
  const thinking = { type: "thinking", thinking: "Hm.", signature: "c2lnMg==" };
  const use = { type: "tool_use", id: "toolu_2", name: "look", input: {} };
  double.answers.push({ content: [thinking, use] });
  const asked = { model, max_tokens: 100, tools };
  const { content } = await client.messages.create({ ...asked, messages: [hi] });
  const result = { type: "tool_result", tool_use_id: "toolu_2", content: "A lamp." } as const;
  const messages = [
    hi,
    { role: "assistant", content } as const,
    { role: "user", content: [result] } satisfies Anthropic.MessageParam,
  ];
  const next = await client.messages.create({ ...asked, messages });
  expect(next.content).toMatchObject([{ text: "Hello from upstream." }]);
  const moved = client.messages.create({ ...asked, system: "New.", messages });
  await expect(moved).rejects.toThrow(/bound to a different conversation/);
  const half = client.messages.create({ ...asked, messages: messages.slice(0, 2).concat(hi) });
  await expect(half).rejects.toThrow(/`tool_use` ids were found without `tool_result`/);
});

describe("errors have the SDK's classes", () => {
  test.each([
    ["credit", Anthropic.BadRequestError],
    ["key", Anthropic.AuthenticationError],
    ["forbidden", Anthropic.PermissionDeniedError],
    ["noModel", Anthropic.NotFoundError],
    ["rate", Anthropic.RateLimitError],
    ["down", Anthropic.InternalServerError],
    ["overloaded", Anthropic.InternalServerError],
  ] as const)("%s", async (name, type) => {
    double.next("messages", anthropicAnswers[name]);
    const asked = client.messages.create({ model, max_tokens: 1, messages: [hi] });
    const error: unknown = await asked.catch((found: unknown) => found);
    expect(error).toBeInstanceOf(type);
    expect(error).toMatchObject({ requestID: "req_011" });
  });

  test("also within a stream", async () => {
    double.answers.push({ content: [{ type: "text", text: "A long text." }], errorAt: 3 });
    const stream = client.messages.stream({ model, max_tokens: 9, messages: [hi] });
    await expect(stream.finalMessage()).rejects.toThrow(/Overloaded/);
  });

  test.each<[string, object, RegExp]>([
    ["no bound", { max_tokens: undefined }, /max_tokens: Field required/],
    ["a field of a beta", { context_management: { edits: [] } }, /Extra inputs are not permitted/],
    ["the assistant first", { messages: [{ role: "assistant", content: "Hi" }] }, /first message/],
    [
      "a blank text",
      { messages: [{ role: "user", content: [{ type: "text", text: " " }] }] },
      /non-whitespace/,
    ],
  ])("%s", async (_name, changes, message) => {
    const asked = { model, max_tokens: 9, messages: [hi], ...changes };
    await expect(
      client.messages.create(asked as Anthropic.MessageCreateParamsNonStreaming),
    ).rejects.toThrow(message);
  });
});

test("lists its models", async () => {
  const ids: string[] = [];
  for await (const one of client.models.list({ limit: 1_000 })) ids.push(one.id);
  expect(ids).toEqual(double.models);
  expect(await client.models.retrieve("claude-opus-latest")).toMatchObject({ type: "model" });
  await expect(client.models.retrieve("none")).rejects.toBeInstanceOf(Anthropic.NotFoundError);
});
