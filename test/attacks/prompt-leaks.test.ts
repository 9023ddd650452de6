import { afterAll, describe, expect, test } from "vitest";
import { refusalOf } from "../e2e/caller.ts";
import { chat, developerPrompt, promptMark } from "../e2e/catalog.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";

ownWorldOnly();
const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    models: [
      ...usual.models,
      chat("named", { upstream: "legacy", passParameters: ["chat_template_kwargs"] }),
      chat("all", { upstream: "legacy", passParameters: ["*"] }),
    ],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();
const messages = [{ role: "user", content: "Hi" }];
const header = "x-genmesh-ignored-parameters";

/** The developer prompt in the forms in which servers repeat it: text, messages, tokens. */
const tokens = Array.from(developerPrompt, (letter) => letter.charCodeAt(0));
const echoes = {
  prompt_token_ids: tokens,
  prompt_logprobs: [{ 1: { decoded_token: developerPrompt } }],
  prompt_text: developerPrompt,
  text_after_process: developerPrompt,
  meta_info: { prompt: developerPrompt, prompt_tokens: tokens },
  provider_specific_fields: { request: { messages: [{ content: developerPrompt }] } },
  messages: [{ role: "system", content: developerPrompt }],
  input_messages: [{ role: "system", content: developerPrompt }],
  timings: { prompt: developerPrompt },
  __verbose: { prompt: developerPrompt },
  novel: { deep: [{ [developerPrompt]: developerPrompt }] },
};
const forbidden = [promptMark, JSON.stringify(tokens), "novel", "meta_info"];
const head = { id: "up-1", created: 7, model: "up-model" };
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5, cost: 7, ...echoes };

function expectNoEcho(text: string): void {
  for (const one of forbidden) expect(text).not.toContain(one);
}

describe("chat on a server with forms of its own", () => {
  const call = { id: "c", type: "function", function: { name: "f", arguments: "{}", ...echoes } };
  const detail = { type: "reasoning.text", text: "hm", index: 0 };
  const signed = { thought_signature: "sealed" };
  const said = {
    content: "Hello",
    reasoning: "hm",
    tool_calls: [{ ...call, ...echoes }],
    // State for the next turn also has only its own fields.
    reasoning_details: [{ ...detail, ...echoes }],
    extra_content: { google: { ...signed, ...echoes }, ...echoes },
    ...echoes,
  };
  const token = { token: "H", logprob: -1, bytes: [72], top_logprobs: [], ...echoes };
  const logprobs = { content: [token], ...echoes };

  /** Properties that genmesh adds: the cost of the answer. */
  const cost = { cost: 0.000011, costUsdMicros: 11 };

  test.for(["legacy", "peer"])(
    "JSON on %s shows what chat has, and nothing else",
    async (model) => {
      const message = { role: "assistant", ...said };
      const choice = { index: 0, message, finish_reason: "stop", logprobs, ...echoes };
      const body = { ...head, object: "chat.completion", choices: [choice], usage, ...echoes };
      world.play({ kind: "json", body });
      const { status, text, json } = await caller.post("/chat/completions", { model, messages });
      expect(status).toBe(200);
      expectNoEcho(text);
      expect(json).toEqual({
        ...head,
        id: expect.stringMatching(/^chatcmpl-/),
        model,
        object: "chat.completion",
        choices: [
          {
            index: 0,
            message: {
              role: "assistant",
              content: "Hello",
              refusal: null,
              reasoning_content: "hm",
              reasoning_details: [detail],
              extra_content: { google: signed },
              tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
            },
            // The server answered "stop" beside a call.
            finish_reason: "tool_calls",
            logprobs: { content: [{ token: "H", logprob: -1, bytes: [72], top_logprobs: [] }] },
          },
        ],
        usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5, ...cost },
      });
    },
  );

  test.for(["legacy", "peer"])("so do chunks on %s", async (model) => {
    const chunk = (delta: object, finish: string | null = null) => ({
      ...head,
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, finish_reason: finish, logprobs, ...echoes }],
      ...echoes,
    });
    world.play({
      kind: "events",
      events: [
        { ...head, choices: [], ...echoes },
        chunk({ role: "assistant", content: "" }),
        chunk(said),
        chunk({}, "stop"),
        { ...head, choices: [], usage },
      ],
    });
    const events = await caller.stream("/chat/completions", {
      model,
      messages,
      stream_options: { include_usage: true },
    });
    expectNoEcho(JSON.stringify(events));
    const deltas = events.flatMap(({ json }) => json?.choices ?? []).map(({ delta }) => delta);
    expect(deltas).toContainEqual({
      content: "Hello",
      reasoning_content: "hm",
      reasoning_details: [detail],
      extra_content: { google: signed },
      tool_calls: [
        { index: 0, id: "c", type: "function", function: { name: "f", arguments: "{}" } },
      ],
    });
    expect(events.at(-1)?.data).toBe("[DONE]");
    expect(events.at(-2)?.json.usage).toEqual({
      prompt_tokens: 3,
      completion_tokens: 2,
      total_tokens: 5,
      ...cost,
    });
  });
});

describe("Responses on a server with forms of its own", () => {
  const response = { id: "r", object: "response", output: [], ...echoes };
  const counted = { input_tokens: 3, output_tokens: 2, total_tokens: 5, ...echoes };

  test("JSON, compaction and every event with a response", async () => {
    const body = { ...response, status: "completed", usage: counted };
    world.play({ kind: "json", body });
    for (const path of ["/responses", "/responses/compact"]) {
      const { status, text } = await caller.post(path, { model: "scripted", input: "Hi" });
      expect(status).toBe(200);
      expectNoEcho(text);
    }
    const types = ["created", "in_progress", "novelty", "completed"];
    const error = { message: developerPrompt };
    const events = types.map((type) => ({
      type: `response.${type}`,
      response: { ...body, error, status: undefined },
      ...echoes,
    }));
    world.play({ kind: "events", events });
    const streamed = await caller.stream("/responses", { model: "scripted", input: "Hi" });
    expect(streamed.map(({ name }) => name)).toContain("response.novelty");
    expectNoEcho(JSON.stringify(streamed).replaceAll("novelty", ""));
  });

  test("an unknown event passes, without the prompt", async () => {
    const happened = { type: "response.thing.happened", detail: { deep: [1, { a: "b" }] } };
    const telling = { type: "response.thing.told", detail: 1, request: { text: developerPrompt } };
    const completed = { type: "response.completed", response: { ...response, usage: counted } };
    world.play({ kind: "events", events: [happened, telling, completed] });
    const streamed = await caller.stream("/responses", { model: "scripted", input: "Hi" });
    const shown = streamed.map(({ json }) => json);
    expect(shown).toContainEqual({ ...happened, sequence_number: expect.any(Number) });
    expect(shown).toContainEqual({
      type: telling.type,
      detail: 1,
      sequence_number: expect.any(Number),
    });
  });
});

describe("what the caller may ask a server for", () => {
  const asking = { return_token_ids: true, echo: true, chat_template: "{{ messages }}", top_k: 4 };

  test.for([
    ["legacy", "/chat/completions", { messages }],
    ["peer", "/chat/completions", { messages }],
    ["scripted", "/chat/completions", { messages }],
    ["scripted", "/responses", { input: "Hi" }],
    ["scripted", "/responses/compact", { input: "Hi" }],
  ] as const)("on %s by %s is on a list; the rest is named", async ([model, path, body]) => {
    const seen = world.play();
    const whole = await caller.post(path, { model, ...body, ...asking });
    expect(whole.status).toBe(200);
    const named = "return_token_ids, echo, chat_template";
    expect(whole.headers.get(header)).toBe(named);
    expect(seen[0]?.body).toMatchObject({ top_k: 4 });
    for (const name of named.split(", ")) expect(seen[0]?.body).not.toHaveProperty(name);
    if (path === "/responses/compact") return;
    const stream = await caller.open(path, { model, ...body, ...asking });
    expect(stream.headers.get(header)).toBe(named);
    await stream.rest();
    expect((await caller.post(path, { model, ...body })).headers.get(header)).toBeNull();
  });

  test("a model may name more, or all", async () => {
    const seen = world.play();
    const more = { chat_template_kwargs: { enable_thinking: false }, echo: true };
    const named = await caller.post("/chat/completions", { model: "named", messages, ...more });
    expect(named.headers.get(header)).toBe("echo");
    expect(seen[0]?.body).toMatchObject({ chat_template_kwargs: more.chat_template_kwargs });
    const all = await caller.post("/chat/completions", { model: "all", messages, ...more });
    expect(all.headers.get(header)).toBeNull();
    expect(seen[1]?.body).toMatchObject(more);
  });

  test("those who join a request or repeat it are told too", async () => {
    world.play({ kind: "ok", firstByteDelayMs: 300 });
    const ask = () =>
      caller.post(
        "/responses",
        { model: "scripted", input: "Hi", echo: true },
        { idempotencyKey: "ignored-1" },
      );
    const both = await Promise.all([ask(), ask()]);
    expect(both.map(({ headers }) => headers.get(header))).toEqual(["echo", "echo"]);
    const again = await ask();
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(again.headers.get(header)).toBe("echo");
  });
});

describe("an upstream's error", () => {
  test.for([
    { code: "context_length_exceeded" },
    { code: 400, type: "exceed_context_size_error" },
    { code: 400, type: "BadRequestError", message: `maximum context length: ${developerPrompt}` },
  ])("that the input is too long stays that: %j", async (error) => {
    const body = { error: { message: developerPrompt, ...error } };
    for (const [model, path, input] of [
      ["scripted", "/responses", { input: "Hi" }],
      ["scripted", "/chat/completions", { messages }],
      ["legacy", "/chat/completions", { messages }],
    ] as const) {
      for (const stream of [false, true]) {
        world.play({ kind: "json", status: 400, body });
        const asked = await caller.post(path, { model, ...input, stream });
        const param = path === "/responses" ? "input" : "messages";
        const expected = `400 invalid_request_error context_length_exceeded ${param}`;
        expect(refusalOf(asked)).toBe(expected);
        expect(asked.text).not.toContain(promptMark);
        if (model !== "legacy") {
          const failed = { id: "r", object: "response", status: "failed", output: [], ...body };
          world.play({ kind: "json", body: failed });
          if (!stream)
            expect(refusalOf(await caller.post(path, { model, ...input }))).toBe(expected);
        }
        // Before any output it is the same, although the stream had begun.
        if (!stream) continue;
        const isChat = model === "legacy";
        const event = { ...(isChat ? {} : { type: "error" }), ...body };
        world.play({ kind: "events", events: [event], done: false });
        const begun = await caller.post(path, { model, ...input, stream });
        expect(refusalOf(begun)).toBe(expected);
      }
    }
  });
});
