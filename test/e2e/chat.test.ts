import { afterAll, describe, expect, test } from "vitest";
import { refusalOf } from "./caller.ts";
import { developerPrompt } from "./catalog.ts";
import type { SseEvent } from "./sse.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();
const path = "/chat/completions";
const messages = [{ role: "user", content: "say hello" }];

const chunksOf = (events: readonly SseEvent[]) =>
  events.filter(({ data }) => data !== "[DONE]").map(({ json }) => json);
const deltasOf = (events: readonly SseEvent[]) =>
  chunksOf(events).flatMap(({ choices }) => choices.map((one: { delta: object }) => one.delta));

/** Checks the rules of every chat stream that succeeds. */
function expectWellFormed(events: readonly SseEvent[], model: string, finish = "stop"): void {
  expect(events.at(-1)?.data).toBe("[DONE]");
  expect(events.every(({ name }) => name === undefined)).toBe(true);
  const chunks = chunksOf(events).filter(({ choices }) => choices.length > 0);
  expect(chunks[0].choices[0].delta.role).toBe("assistant");
  const reasons = chunks.map(({ choices }) => choices[0].finish_reason);
  expect(reasons.at(-1)).toBe(finish);
  expect(reasons.slice(0, -1).every((reason) => reason === null)).toBe(true);
  for (const chunk of chunksOf(events)) {
    expect(chunk).toMatchObject({ object: "chat.completion.chunk", model });
    expect(chunk.id).toBe(chunks[0].id);
    expect(Number.isInteger(chunk.created)).toBe(true);
  }
}

describe("a chat completion of the builtin model", () => {
  test("has the object's fields", async () => {
    const { status, json } = await caller.post(path, { model: "chat-1", messages });
    expect(status).toBe(200);
    expect(json).toMatchObject({ object: "chat.completion", model: "chat-1" });
    expect(json.id).toMatch(/./);
    expect(Number.isInteger(json.created)).toBe(true);
    expect(json.choices).toEqual([
      {
        index: 0,
        message: expect.objectContaining({ role: "assistant", content: "hello", refusal: null }),
        logprobs: null,
        finish_reason: "stop",
      },
    ]);
    const { prompt_tokens, completion_tokens, total_tokens } = json.usage;
    expect(completion_tokens).toBe(1);
    expect(total_tokens).toBe(prompt_tokens + completion_tokens);
  });

  test("streams: role first, reason last, no usage that was not asked for", async () => {
    const events = await caller.stream(path, { model: "chat-1", messages });
    expectWellFormed(events, "chat-1");
    expect(chunksOf(events).every(({ usage }) => !usage)).toBe(true);
    expect(
      deltasOf(events)
        .map(({ content }) => content ?? "")
        .join(""),
    ).toBe("hello");
  });

  test("streams usage where asked: the last chunk, without a choice", async () => {
    const events = await caller.stream(path, {
      model: "chat-1",
      messages,
      stream_options: { include_usage: true },
    });
    expectWellFormed(events, "chat-1");
    const chunks = chunksOf(events);
    const last = chunks.at(-1);
    expect(last.choices).toEqual([]);
    expect(last.usage.total_tokens).toBe(last.usage.prompt_tokens + last.usage.completion_tokens);
    expect(chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true);
  });

  test("calls a tool, and answers by its result", async () => {
    const tools = [
      { type: "function", function: { name: "get_time", parameters: { type: "object" } } },
    ];
    const first = await caller.post(path, { model: "chat-1", messages, tools });
    const [choice] = first.json.choices;
    expect(choice.finish_reason).toBe("tool_calls");
    expect(choice.message.content).toBeNull();
    const [call] = choice.message.tool_calls;
    expect(call).toMatchObject({ type: "function", function: { name: "get_time" } });
    const next = await caller.post(path, {
      model: "chat-1",
      messages: [
        ...messages,
        choice.message,
        { role: "tool", tool_call_id: call.id, content: "high noon" },
      ],
      tools,
    });
    expect(next.status).toBe(200);
    expect(next.json.choices[0].message.content).toContain("high noon");
  });

  test("keeps to max_completion_tokens and response_format", async () => {
    const short = await caller.post(path, {
      model: "chat-1",
      messages: [{ role: "user", content: "Tell me a story." }],
      max_completion_tokens: 4,
    });
    expect(short.json.choices[0].finish_reason).toBe("length");
    expect(short.json.usage.completion_tokens).toBe(4);
    const schema = {
      type: "object",
      properties: { name: { type: "string" }, age: { type: "integer" } },
      required: ["name", "age"],
      additionalProperties: false,
    };
    const shaped = await caller.post(path, {
      model: "chat-1",
      messages,
      response_format: { type: "json_schema", json_schema: { name: "person", schema } },
    });
    expect(JSON.parse(shaped.json.choices[0].message.content)).toEqual({
      name: expect.any(String),
      age: expect.any(Number),
    });
  });
});

/** A request with all fields that are translated, and its form in the Responses format. */
const rich = {
  messages: [
    { role: "system", content: "Be kind." },
    { role: "developer", content: "Be brief." },
    { role: "user", content: "Weather?" },
    {
      role: "assistant",
      content: null,
      tool_calls: [
        { id: "call_1", type: "function", function: { name: "look", arguments: '{"at": "sky"}' } },
      ],
    },
    { role: "tool", tool_call_id: "call_1", content: "blue" },
  ],
  tools: [{ type: "function", function: { name: "look", parameters: { type: "object" } } }],
  tool_choice: { type: "function", function: { name: "look" } },
  response_format: { type: "json_object" },
  max_tokens: 77,
  reasoning_effort: "FAST",
  temperature: 0.3,
};

describe("on a Responses upstream", () => {
  ownWorldOnly();

  test("is translated on its way up", async () => {
    const seen = world.play();
    const { status } = await caller.post(path, { model: "scripted", ...rich });
    expect(status).toBe(200);
    expect(seen[0]?.path).toBe("/v1/responses");
    const { body } = seen[0] ?? {};
    expect(body).toMatchObject({
      model: "up-model",
      store: false,
      max_output_tokens: 77,
      reasoning: { effort: "low" },
      temperature: 0.3,
      text: { format: { type: "json_object" } },
      tool_choice: { type: "function", name: "look" },
      tools: [{ type: "function", name: "look", parameters: { type: "object" } }],
    });
    expect(body.input.slice(-5)).toMatchObject([
      { role: "system", content: "Be kind." },
      { role: "developer", content: "Be brief." },
      { role: "user", content: "Weather?" },
      { type: "function_call", call_id: "call_1", name: "look", arguments: '{"at": "sky"}' },
      { type: "function_call_output", call_id: "call_1", output: "blue" },
    ]);
    const before = JSON.stringify([body.instructions, body.input.slice(0, -5)]);
    expect(before).toContain(developerPrompt);
    for (const name of ["messages", "max_tokens", "response_format", "reasoning_effort"]) {
      expect(body).not.toHaveProperty(name);
    }
  });

  test("is translated on its way back", async () => {
    world.play();
    const { json } = await caller.post(path, { model: "scripted", messages });
    expect(json).toMatchObject({
      object: "chat.completion",
      model: "scripted",
      choices: [{ message: { content: "Hello from upstream." }, finish_reason: "stop" }],
      usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    });
    world.play({ kind: "ok", call: { name: "look", arguments: '{"a" : 1}' } });
    const called = await caller.post(path, { model: "scripted", messages, tools: rich.tools });
    expect(called.json.choices[0]).toMatchObject({
      finish_reason: "tool_calls",
      message: {
        content: null,
        tool_calls: [
          { id: "call_up_1", type: "function", function: { name: "look", arguments: '{"a" : 1}' } },
        ],
      },
    });
    for (const [finish, reason] of [
      ["length", "length"],
      ["content_filter", "content_filter"],
    ] as const) {
      world.play({ kind: "ok", finish });
      const cut = await caller.post(path, { model: "scripted", messages });
      expect(cut.json.choices[0].finish_reason).toBe(reason);
    }
  });

  test("streams its chunks", async () => {
    world.play();
    const stream_options = { include_usage: true };
    const events = await caller.stream(path, { model: "scripted", messages, stream_options });
    expectWellFormed(events, "scripted");
    expect(
      deltasOf(events)
        .map(({ content }) => content ?? "")
        .join(""),
    ).toBe("Hello from upstream.");
    expect(chunksOf(events).at(-1).usage).toMatchObject({
      prompt_tokens: 10,
      completion_tokens: 5,
    });
  });

  test("streams calls", async () => {
    world.play({ kind: "ok", call: { name: "look", arguments: '{"where": "up there"}' } });
    const events = await caller.stream(path, { model: "scripted", messages, tools: rich.tools });
    expectWellFormed(events, "scripted", "tool_calls");
    const pieces = deltasOf(events).flatMap(({ tool_calls = [] }) => tool_calls);
    expect(pieces[0]).toMatchObject({ index: 0, id: "call_up_1", function: { name: "look" } });
    const args = pieces.map((piece) => piece.function?.arguments ?? "").join("");
    expect(args).toBe('{"where": "up there"}');
  });
});

describe("on an upstream that has Chat Completions alone", () => {
  ownWorldOnly();

  test("goes up as it is, behind the developer prompt", async () => {
    const seen = world.play();
    const { json } = await caller.post(path, { model: "legacy", ...rich, top_k: 1 });
    expect(seen[0]?.path).toBe("/v1/chat/completions");
    const { messages: sent, ...options } = rich;
    expect(seen[0]?.body).toMatchObject({
      ...options,
      reasoning_effort: "low",
      model: "up-model",
      top_k: 1,
      store: false,
    });
    expect(seen[0]?.body.messages).toEqual([{ role: "system", content: developerPrompt }, ...sent]);
    expect(json).toMatchObject({
      model: "legacy",
      choices: [{ message: { content: "Hello from upstream." }, finish_reason: "stop" }],
      usage: { prompt_tokens: 10, completion_tokens: 5 },
    });
  });

  test.for([true, false])("is always asked for usage; shown: %s", async (include_usage) => {
    const seen = world.play();
    const events = await caller.stream(path, {
      model: "legacy",
      messages,
      ...(include_usage ? { stream_options: { include_usage } } : {}),
    });
    expect(seen[0]?.body.stream_options).toEqual({ include_usage: true });
    expectWellFormed(events, "legacy");
    const withUsage = chunksOf(events).filter(({ usage }) => usage);
    expect(withUsage).toHaveLength(include_usage ? 1 : 0);
    if (include_usage) expect(chunksOf(events).at(-1).usage.total_tokens).toBe(15);
  });

  test("calls, in one piece and in many", async () => {
    world.play({ kind: "ok", call: { name: "look", arguments: '{"a" : 1}' } });
    const body = { model: "legacy", messages, tools: rich.tools };
    const { json } = await caller.post(path, body);
    expect(json.choices[0]).toMatchObject({ finish_reason: "tool_calls" });
    expect(json.choices[0].message.tool_calls[0].function.arguments).toBe('{"a" : 1}');
    const events = await caller.stream(path, body);
    expectWellFormed(events, "legacy", "tool_calls");
  });

  test("another deployment is asked natively too", async () => {
    const seen = world.play();
    const { json } = await caller.post(path, { model: "peer", messages });
    expect(seen[0]?.path).toBe("/v1/chat/completions");
    expect(json.model).toBe("peer");
  });
});

describe("a chat stream that breaks", () => {
  ownWorldOnly();
  const models = ["scripted", "legacy"];
  const breaks = ["destroy", "end", "garbage", "error", "failed"] as const;

  test.for(models.flatMap((model) => breaks.map((how) => [model, how] as const)))(
    "on %s by %s ends with an error, and never with [DONE]",
    async ([model, how]) => {
      world.play({ kind: "ok", usage: null, break: { how, after: 2 } });
      const events = await caller.stream(path, { model, messages });
      expect(events.map(({ data }) => data)).not.toContain("[DONE]");
      const { error } = events.at(-1)?.json ?? {};
      expect(error).toMatchObject({ type: "server_error", code: "model_request_failed" });
      const reasons = chunksOf(events).flatMap(({ choices = [] }) => choices);
      expect(reasons.every((choice) => choice.finish_reason === null)).toBe(true);
      expect(JSON.stringify(events)).not.toContain("UPSTREAM SECRET WORDS");
    },
  );

  test.for(models)("on %s before its first event is a 502", async (model) => {
    world.play({ kind: "drop" });
    const asked = await caller.post(path, { model, messages, stream: true });
    expect(refusalOf(asked)).toBe("502 server_error model_request_failed null");
  });
});
