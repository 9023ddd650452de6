import { afterAll, describe, expect, test } from "vitest";
import { refusalOf } from "../e2e/caller.ts";
import { chat, developerPrompt } from "../e2e/catalog.ts";
import type { SseEvent } from "../e2e/sse.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";

ownWorldOnly();
const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    models: [...usual.models, chat("mixed", { fallbackUpstreams: ["legacy"] })],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();
const path = "/chat/completions";
const messages = [{ role: "user", content: "Hi" }];

const deltasOf = (events: readonly SseEvent[]) =>
  events.flatMap(({ json }) => json?.choices ?? []).map(({ delta }) => delta);
const contentOf = (events: readonly SseEvent[]) =>
  deltasOf(events)
    .map(({ content }) => content ?? "")
    .join("");
const finishOf = (events: readonly SseEvent[]) =>
  events.flatMap(({ json }) => json?.choices ?? []).at(-1)?.finish_reason;

describe("forms of chat that callers have", () => {
  const parts = [
    { type: "text", text: "Hel" },
    { type: "text", text: "lo" },
  ];

  test.for(["legacy", "peer", "scripted", "chat-1"])(
    "on %s: text parts and instructions",
    async (model) => {
      const seen = world.play();
      const body = { model, messages: [{ role: "user", content: parts }], instructions: "Mine." };
      const { status } = await caller.post(path, body);
      expect(status).toBe(200);
      if (model === "chat-1") return;
      const { messages: sent, input, ...rest } = seen[0]?.body ?? {};
      const prompt = model === "scripted" ? "message" : undefined;
      expect(sent ?? input).toEqual([
        {
          ...(prompt ? { type: prompt } : {}),
          role: "system",
          content: `${developerPrompt}\n\nMine.`,
        },
        { ...(prompt ? { type: prompt } : {}), role: "user", content: "Hello" },
      ]);
      expect(rest).not.toHaveProperty("instructions");
    },
  );

  test("values at their defaults are not sent to a Responses upstream", async () => {
    const seen = world.play();
    const defaults = {
      n: 1,
      stop: null,
      logit_bias: {},
      presence_penalty: 0,
      frequency_penalty: 0,
      logprobs: false,
      top_logprobs: 0,
      modalities: ["text"],
      functions: [],
      function_call: "none",
      prediction: null,
      stream_options: null,
    };
    const { status, headers } = await caller.post(path, {
      model: "scripted",
      messages,
      ...defaults,
    });
    expect(status).toBe(200);
    expect(headers.get("x-genmesh-ignored-parameters")).toBeNull();
    expect(Object.keys(seen[0]?.body)).toEqual(["model", "store", "input", "stream"]);
  });

  test.for([
    [{ logit_bias: { 50256: -100 } }, "logit_bias"],
    [{ functions: [{ name: "f" }] }, "functions"],
    [{ response_format: { type: "grammar" } }, "response_format.type"],
    [{ stop: Array.from({ length: 17 }, (_, at) => `${at}`) }, "stop"],
  ] as const)("what has no translation is refused before the hold: %j", async ([fields, param]) => {
    const payer = await world.caller();
    const seen = world.play();
    const before = await payer.balance();
    for (const model of ["scripted", "chat-1"]) {
      const asked = await payer.post(path, { model, messages, ...fields });
      expect(refusalOf(asked)).toBe(`400 invalid_request_error unsupported_parameter ${param}`);
    }
    expect(seen).toHaveLength(0);
    expect(await payer.balance()).toEqual(before);
    // An upstream that speaks chat itself gets chat.
    await payer.post(path, { model: "mixed", messages, ...fields });
    expect(seen[0]?.path).toBe("/v1/chat/completions");
    expect(seen[0]?.body).toMatchObject(fields);
  });
});

describe("stop sequences on a Responses upstream", () => {
  const deltas = ["One, two", ", thr", "e", "e; four", " and five"];

  test.for([
    [["three"], "One, two, "],
    ["two", "One, "],
    [["nowhere", "; fo", "and"], "One, two, three"],
    [["One"], ""],
    [["four and fiver"], "One, two, three; four and five"],
    [["five!", "nd five"], "One, two, three; four a"],
  ] as const)("end the text: %j", async ([stop, expected]) => {
    for (const model of ["scripted"]) {
      const seen = world.play({ kind: "ok", deltas });
      const whole = await caller.post(path, { model, messages, stop });
      expect(whole.json.choices[0]).toMatchObject({
        finish_reason: "stop",
        message: { content: expected },
      });
      const events = await caller.stream(path, { model, messages, stop });
      expect(contentOf(events)).toBe(expected);
      expect(finishOf(events)).toBe("stop");
      expect(events.at(-1)?.data).toBe("[DONE]");
      for (const { body } of seen) expect(body).not.toHaveProperty("stop");
    }
  });

  test("close an upstream that sends no usage, and what it said is charged", async () => {
    const payer = await world.caller();
    const seen = world.play({
      kind: "ok",
      deltas: ["One, two", ", three", " and"],
      deltaDelayMs: 50,
      break: { how: "hang", after: 3 },
    });
    const before = await payer.balance();
    const events = await payer.stream(path, {
      model: "scripted",
      messages,
      stop: ["three"],
      stream_options: { include_usage: true },
    });
    expect(contentOf(events)).toBe("One, two, ");
    expect(events.at(-2)?.json.usage).toMatchObject({ estimated: true });
    await seen[0]?.over;
    expect(seen[0]?.aborted).toBe(true);
    const spent = before.available - (await payer.settled()).available;
    // Counted: a few tokens of prompt at 1 micro, seven of the upstream's output at 4.
    expect(spent).toBeGreaterThan(28);
    expect(spent).toBeLessThan(400);
  });

  test("are looked for in the text alone, not in calls", async () => {
    world.play({ kind: "ok", call: { name: "look", arguments: '{"at":"three"}' } });
    const tools = [{ type: "function", function: { name: "look" } }];
    const events = await caller.stream(path, { model: "scripted", messages, tools, stop: "three" });
    expect(finishOf(events)).toBe("tool_calls");
    const calls = deltasOf(events).flatMap(({ tool_calls = [] }) => tool_calls);
    expect(calls.map((call) => call.function?.arguments ?? "").join("")).toBe('{"at":"three"}');
  });

  test("leave the logprobs of what is shown", async () => {
    const token = (text: string) => ({ token: text, logprob: -1, bytes: [1], top_logprobs: [] });
    const said = (delta: string) => ({
      type: "response.output_text.delta",
      output_index: 0,
      content_index: 0,
      delta,
      logprobs: [token(delta)],
    });
    const events = [said("a"), said("b"), said("s"), said("top"), said("c")];
    world.play({ kind: "events", events });
    const streamed = await caller.stream(path, {
      model: "scripted",
      messages,
      logprobs: true,
      stop: "stop",
    });
    const shown = streamed.flatMap(({ json }) => json?.choices ?? []).map((one) => one.logprobs);
    expect(shown.flatMap((one) => one?.content ?? []).map((one) => one.token)).toEqual(["a", "b"]);
  });

  test("of the builtin model", async () => {
    const body = {
      model: "chat-1",
      messages: [{ role: "user", content: "say hello" }],
      stop: "ll",
    };
    const { json } = await caller.post(path, body);
    expect(json.choices[0].message.content).toBe("he");
    expect(contentOf(await caller.stream(path, body))).toBe("he");
  });
});

describe("reasoning", () => {
  const delta = (type: string, text: string, more: object = {}) => ({
    type: `response.${type}.delta`,
    output_index: 0,
    content_index: 0,
    delta: text,
    ...more,
  });

  test("of a Responses upstream is streamed as reasoning_content, and shown in JSON", async () => {
    const item = {
      type: "reasoning",
      id: "rs",
      summary: [],
      content: [{ type: "reasoning_text", text: "I think so." }],
    };
    const message = {
      type: "message",
      id: "m",
      role: "assistant",
      content: [{ type: "output_text", text: "Yes." }],
    };
    const response = { id: "r", status: "completed", output: [item, message] };
    world.play({
      kind: "events",
      events: [
        delta("reasoning_text", "I think"),
        delta("reasoning_text", " so."),
        delta("output_text", "Yes.", { output_index: 1 }),
        { type: "response.completed", response },
      ],
    });
    const events = await caller.stream(path, { model: "scripted", messages });
    expect(
      deltasOf(events)
        .map(({ reasoning_content }) => reasoning_content ?? "")
        .join(""),
    ).toBe("I think so.");
    expect(contentOf(events)).toBe("Yes.");
    world.play({ kind: "json", body: response });
    const { json } = await caller.post(path, { model: "scripted", messages });
    expect(json.choices[0].message).toMatchObject({
      content: "Yes.",
      reasoning_content: "I think so.",
    });
  });

  test("summaries are paragraphs", async () => {
    world.play({
      kind: "events",
      events: [
        delta("reasoning_summary_text", "One.", { summary_index: 0 }),
        delta("reasoning_summary_text", "Two.", { summary_index: 1 }),
        { type: "response.completed", response: { id: "r", status: "completed" } },
      ],
    });
    const events = await caller.stream(path, { model: "scripted", messages });
    expect(
      deltasOf(events)
        .map(({ reasoning_content }) => reasoning_content ?? "")
        .join(""),
    ).toBe("One.\n\nTwo.");
  });
});
