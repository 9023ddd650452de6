import { expect, test } from "vitest";
import type { JsonObject, JsonValue } from "#kit/base/json.ts";
import { createSseParser } from "#kit/upstream/sse.ts";
import { readEvents } from "../../../../test/support/text-requests.ts";
import { UpstreamFailure } from "../failure.ts";
import type { AnswerEvent } from "../port.ts";
import type { StreamReader } from "../stream-reader.ts";
import { type ChatFacts, ChatFromResponses } from "./from-responses.ts";
import { NativeChat } from "./native.ts";

const facts = (withUsage = false): ChatFacts => ({
  id: "chatcmpl-1",
  modelId: "chat-1",
  nowS: () => 1000,
  withUsage,
});

type End = "end" | "cut" | "timeout";

function read(reader: StreamReader, events: readonly (JsonObject | string)[], end: End = "end") {
  const out: AnswerEvent[] = [];
  const text = events
    .map((event) => (typeof event === "string" ? event : `data: ${JSON.stringify(event)}\n\n`))
    .join("");
  for (const event of createSseParser({ maxEventBytes: 1e6 }).push(Buffer.from(text))) {
    reader.read(event, out);
  }
  reader.settle(out);
  reader.end(end, out);
  const result = { out, text: out.map((event) => event.text).join(""), ...readEvents(out) };
  expect(out.filter((event) => event.ending)).toEqual([out.at(-1)]);
  expect(result.wire).not.toContain("up-model");
  expect(result.wire).not.toContain("SECRET");
  return result;
}

const translate = (events: readonly (JsonObject | string)[], withUsage = false, end: End = "end") =>
  read(new ChatFromResponses(facts(withUsage)), events, end);
const pass = (events: readonly (JsonObject | string)[], withUsage = false, end: End = "end") =>
  read(new NativeChat(facts(withUsage)), events, end);

const usage = { input_tokens: 3, output_tokens: 2, total_tokens: 5 };
const created = {
  type: "response.created",
  response: { id: "r", created_at: 5, model: "up-model", instructions: "SECRET" },
};
const delta = (text: string, more: JsonObject = {}) => ({
  type: "response.output_text.delta",
  output_index: 0,
  content_index: 0,
  delta: text,
  ...more,
});
const completed = (response: JsonObject = {}) => ({
  type: "response.completed",
  response: { created_at: 5, usage, ...response },
});

const choices = (data: { choices: unknown[] }[]) => data.map((chunk) => chunk.choices[0]);
const chunk = (delta: JsonObject, finish: string | null = null, logprobs: JsonValue = null) => ({
  index: 0,
  delta,
  logprobs,
  finish_reason: finish,
});
const role = chunk({ role: "assistant", content: "", refusal: null });

test("role first, text, reason last; usage is known though it is not shown", () => {
  const result = translate([created, delta("Hel"), delta("lo"), completed()]);
  expect(choices(result.data)).toEqual([
    role,
    chunk({ content: "Hel" }),
    chunk({ content: "lo" }),
    chunk({}, "stop"),
  ]);
  for (const shown of result.data) {
    expect(shown).toMatchObject({
      id: "chatcmpl-1",
      object: "chat.completion.chunk",
      created: 5,
      model: "chat-1",
    });
    expect("usage" in shown).toBe(false);
  }
  expect(result.out.at(-1)).toMatchObject({ ending: "completed", usage: { inputTokens: 3 } });
  expect(result.text).toBe("Hello");
});

test("the usage chunk is the last where it is asked for", () => {
  const result = translate([created, delta("Hi"), completed()], true);
  expect(result.data.slice(0, -1).every((shown) => shown.usage === null)).toBe(true);
  expect(result.data.at(-1)).toMatchObject({
    choices: [],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  });
  expect(result.out.at(-1)).toMatchObject({ ending: "completed", usage: { outputTokens: 2 } });
  const without = translate([created, delta("Hi"), completed({ usage: null })], true);
  expect(without.data.at(-1).choices[0].finish_reason).toBe("stop");
});

test("calls are indexed in their order and named once", () => {
  const item = (n: number, type = "function_call") => ({
    type: "response.output_item.added",
    output_index: n,
    item: { type, id: `fc_${n}`, call_id: `call_${n}`, name: `f${n}`, arguments: "", input: "" },
  });
  const args = (n: number, text: string) => ({
    type: "response.function_call_arguments.delta",
    output_index: n,
    delta: text,
  });
  const result = translate([
    created,
    item(1),
    args(1, '{"a"'),
    args(1, ":1}"),
    item(2),
    {
      type: "response.output_item.done",
      output_index: 2,
      item: { ...item(2).item, arguments: "{}" },
    },
    item(3, "custom_tool_call"),
    { type: "response.custom_tool_call_input.delta", output_index: 3, delta: "raw" },
    { type: "response.custom_tool_call_input.done", output_index: 3, input: "raw" },
    completed(),
  ]);
  const calls = choices(result.data).slice(1) as { delta: { tool_calls?: JsonObject[] } }[];
  const named = (index: number) => ({ name: `f${index + 1}`, arguments: "" });
  expect(calls.map((choice) => choice.delta.tool_calls?.[0])).toEqual([
    { index: 0, id: "call_1", type: "function", function: named(0) },
    { index: 0, function: { arguments: '{"a"' } },
    { index: 0, function: { arguments: ":1}" } },
    { index: 1, id: "call_2", type: "function", function: named(1) },
    { index: 1, function: { arguments: "{}" } },
    { index: 2, id: "call_3", type: "custom", custom: { name: "f3", input: "" } },
    { index: 2, custom: { input: "raw" } },
    undefined,
  ]);
  expect(result.data.at(-1).choices[0].finish_reason).toBe("tool_calls");
  expect(result.text).toBe('f1{"a":1}f2{}f3raw');
});

test("refusals, reasoning, logprobs, citations, incomplete", () => {
  const logprob = { token: "a", logprob: -1, bytes: [97], top_logprobs: [] };
  const citation = { type: "url_citation", url: "https://a.example" };
  const result = translate([
    created,
    { type: "response.reasoning_text.delta", delta: "hm " },
    delta("a", { logprobs: [logprob] }),
    { type: "response.output_text.annotation.added", annotation: citation },
    { type: "response.refusal.delta", output_index: 0, content_index: 1, delta: "no" },
    {
      type: "response.incomplete",
      response: { usage, incomplete_details: { reason: "max_output_tokens" } },
    },
  ]);
  expect(choices(result.data)).toEqual([
    role,
    chunk({ reasoning_content: "hm " }),
    chunk({ content: "a" }, null, { content: [logprob], refusal: null }),
    chunk({ annotations: [{ type: "url_citation", url_citation: { url: "https://a.example" } }] }),
    chunk({ refusal: "no" }),
    chunk({}, "length"),
  ]);
  expect(result.text).toBe("hm ano");
  expect(result.out.at(-1)?.ending).toBe("incomplete");
});

test("text that comes only when it is done, or only at the end, is said once", () => {
  const done = (text: string) => ({
    type: "response.output_text.done",
    output_index: 0,
    content_index: 0,
    text,
  });
  expect(translate([created, delta("He"), done("Hello"), completed()]).text).toBe("Hello");
  const output = [{ type: "message", content: [{ type: "output_text", text: "Hello" }] }];
  expect(translate([created, completed({ output })]).text).toBe("Hello");
  expect(translate([created, delta("Hello"), completed({ output })]).text).toBe("Hello");
});

const head = { id: "up-1", object: "chat.completion.chunk", created: 7, model: "up-model" };
const ours = { id: "chatcmpl-1", model: "chat-1" };
const said = (content: string, more: JsonObject = {}) => ({
  ...head,
  choices: [chunk({ content })],
  ...more,
});
const began = { ...head, choices: [chunk({ role: "assistant", content: "" })] };
const finished = { ...head, choices: [chunk({}, "stop")] };
const used = { ...head, choices: [], usage: { prompt_tokens: 3, completion_tokens: 2 } };

test("native: id and model are exchanged, usage is asked for but shown only on request", () => {
  const events = [began, said("Hel"), said("lo 🦊"), finished, used, "data: [DONE]\n\n"];
  const result = pass(events);
  expect(result.data).toEqual(
    [began, said("Hel"), said("lo 🦊"), finished].map((event) => ({ ...event, ...ours })),
  );
  expect(result.text).toBe("Hello 🦊");
  expect(result.out.at(-1)).toMatchObject({
    ending: "completed",
    usage: { inputTokens: 3, cachedInputTokens: 0, outputTokens: 2 },
  });
  const shown = pass(events, true);
  expect(shown.data.at(-1)).toMatchObject({ ...used, ...ours });
  expect(shown.out.at(-1)?.ending).toBe("completed");
});

test.each<[string, JsonObject]>([
  ["first", { id: "up-1", object: "chat.completion.chunk", created: 7, model: "up" }],
  ["last", { model: "up", created: 7, object: "chat.completion.chunk", id: "up-1" }],
])("native: a chunk's bytes are those that came, but for our id and model: id %s", (_, head) => {
  // JSON with the spaces that Python writes. A chunk that was serialized again would have other spaces.
  const spaced = (value: JsonObject) => JSON.stringify(value, null, 1).replaceAll(/\n */g, " ");
  const deltas = [{ role: "assistant", content: "" }, { content: "Hi" }, { content: " 🦊" }];
  const events = (shown: JsonObject) =>
    deltas.map((delta) => `data: ${spaced({ ...shown, choices: [chunk(delta)] })}\n\n`);
  const { out } = pass(events(head));
  const frames = out.slice(0, 3).map(({ frame }) => Buffer.from(frame).toString());
  expect(frames).toEqual(events({ ...head, ...ours }));
});

test.each<[string, JsonObject]>([
  ["model", { extra: { model: "up-model" }, choices: [], model: "up-model" }],
  ["id", { choices: [chunk({ tool_calls: [{ index: 0, id: "up-1" }] })], model: "up-model" }],
])("native: a field %s within a chunk does not mislead the exchange", (_, fields) => {
  const nested = { ...fields, object: "chat.completion.chunk", id: "up-1" };
  const { data } = pass([nested, began, said("a"), nested, said("b")]);
  expect(data.slice(0, -1).every((shown) => shown.model === "chat-1")).toBe(true);
  expect(data.slice(0, -1).every((shown) => shown.id === "chatcmpl-1")).toBe(true);
});

test("native: an upstream that changes its id, or its model, in a stream changes neither", () => {
  const other = { id: "up-2", model: "other" };
  const { data } = pass([began, said("a"), said("b", { id: "up-2" }), said("c", other), finished]);
  expect(data.map(({ id, model }) => ({ id, model }))).toEqual(Array(5).fill(ours));
});

test.each(["id", "model"])("native: a chunk that names its %s twice shows ours", (name) => {
  const twice = JSON.stringify(said("a")).replace(/\}$/, `,"${name}":"other"}`);
  const { data, wire } = pass([began, `data: ${twice}\n\n`, finished]);
  expect(data.map(({ id, model }) => ({ id, model }))).toEqual(Array(3).fill(ours));
  expect(wire).not.toContain("other");
});

test.each([
  ["in one chunk", 1, 1_025, "failed"],
  ["a chunk each", 1_025, 1, "failed"],
  ["a chunk each, as many as may be", 1_024, 1, "completed"],
])("native: sealed reasoning has as many entries as a response items: %s", (...given) => {
  const [, chunks, entries, ending] = given;
  const details = Array.from({ length: entries }, () => ({
    type: "reasoning.encrypted",
    data: "s",
  }));
  const sealed = { ...head, choices: [chunk({ reasoning_details: details })] };
  const { out } = pass([began, ...Array(chunks).fill(sealed), finished, used]);
  expect(out.at(-1)?.ending).toBe(ending);
  expect(out.flatMap(({ opaque }) => opaque ?? []).length).toBeLessThanOrEqual(1_024);
});

test("native: missing role, ids and usage within the last chunk are made right", () => {
  const bare = (choice: JsonObject) => ({ choices: [choice], model: "up-model" });
  const withUsage = { ...bare({ delta: {}, finish_reason: "length" }), usage: used.usage };
  const result = pass([bare({ delta: { content: "Hi" } }), withUsage], true);
  expect(result.data.map((shown) => shown.id)).toEqual(Array(4).fill("chatcmpl-1"));
  expect(result.data[0].choices[0].delta.role).toBe("assistant");
  expect(result.data.at(-1)).toMatchObject({ choices: [], usage: used.usage });
  expect(result.out.at(-1)).toMatchObject({ ending: "incomplete", usage: { inputTokens: 3 } });
  expect("usage" in pass([began, withUsage]).data.at(-1)).toBe(false);
});

test("native: what would repeat the prompt is left out", () => {
  const echo = { prompt_token_ids: [1, 2], prompt_logprobs: null, prompt: "SECRET" };
  const result = pass([{ ...began, ...echo }, said("Hi", echo), { ...finished, ...echo }]);
  expect(result.wire).not.toMatch(/prompt/);
  expect(result.text).toBe("Hi");
});

test("native: a router's echo of what it sent on is left out, wherever it puts it", () => {
  const messages = [{ role: "system", content: "SECRET" }];
  const debug = { echo_upstream_body: { messages }, input_tokens: ["SECRET"] };
  const vendor = { x_groq: { id: "g", debug } };
  const result = pass([
    { ...head, choices: [], debug },
    { ...head, choices: [], __verbose: { prompt: "SECRET" } },
    { ...began, ...vendor },
    said("Hi"),
    { ...finished, ...vendor },
  ]);
  expect(result.wire).not.toContain("debug");
  expect(result.data[0]).not.toHaveProperty("x_groq");
  expect(result.text).toBe("Hi");
});

test.each<[string, JsonObject, string]>([
  ["an error", { error: { code: 502, message: "SECRET" } }, "model_request_failed"],
  ["a policy", { error: { code: "content_filter" } }, "content_policy_violation"],
  ["a reason alone", { finish_reason: "error" }, "model_request_failed"],
])("native: a choice that broke off ends in our words: %s", (_, more, code) => {
  const broken = { ...head, choices: [{ ...chunk({ content: "" }), ...more }], usage: used.usage };
  const { data, out } = pass([began, said("Hi"), broken]);
  expect(data.at(-1)).toMatchObject({ error: { code } });
  expect(out.at(-1)).toMatchObject({ ending: "failed", usage: { inputTokens: 3 } });
});

test("native: text counts calls and reasoning; notes without a choice stay here", () => {
  const note = { ...head, choices: [], prompt_filter_results: [1] };
  const called = { index: 0, id: "c", function: { name: "f", arguments: "{}" } };
  const result = pass([
    note,
    began,
    { ...head, choices: [chunk({ reasoning_content: "hm " })] },
    { ...head, choices: [chunk({ tool_calls: [called] })] },
    finished,
  ]);
  expect(result.text).toBe("hm f{}");
  expect(result.data).toHaveLength(4);
});

test("both: each break ends with one error, and never with a reason", () => {
  const broken = [
    ...(["end", "cut", "timeout"] as const).map((end) =>
      translate([created, delta("Hi")], true, end),
    ),
    translate([created, delta("Hi"), "data: {oops\n\n"]),
    translate([created, delta("Hi"), "data: [DONE]\n\n"]),
    translate([created, { type: "error", code: "x", message: "SECRET" }]),
    ...(["end", "cut", "timeout"] as const).map((end) => pass([began, said("Hi")], true, end)),
    pass([began, said("Hi"), "data: {oops\n\n"]),
    pass([began, said("Hi"), { error: { message: "SECRET" } }]),
    pass([began, said("Hi"), finished], false, "cut"),
  ];
  for (const result of broken) {
    expect(result.out.at(-1)?.ending).toBe("failed");
    expect(result.data.at(-1)).toEqual({
      error: {
        message: expect.any(String),
        type: "server_error",
        param: null,
        code: expect.stringMatching(/^(model_request_failed|upstream_timeout)$/),
      },
    });
    expect(result.data.slice(0, -1).every((shown) => !shown.choices[0]?.finish_reason)).toBe(true);
  }
  expect(broken[2]?.data.at(-1).error.code).toBe("upstream_timeout");
});

test("both: usage that came before the failure is kept", () => {
  const failed = { type: "response.failed", response: { usage, error: { code: "x" } } };
  expect(translate([created, failed]).out.at(-1)).toMatchObject({
    ending: "failed",
    usage: { inputTokens: 3 },
  });
  expect(pass([began, finished, used], false, "cut").out.at(-1)).toMatchObject({
    ending: "failed",
    usage: { inputTokens: 3 },
  });
});

test("both: a failure before anything is no stream", () => {
  expect(() => translate([])).toThrow(UpstreamFailure);
  expect(() => translate([{ type: "error", code: "content_filter" }])).toThrow(/policy/);
  expect(() => pass(["data: <html>\n\n"])).toThrow(/garbage/);
  expect(() => pass([{ error: { code: "content_policy_violation" } }])).toThrow(/policy/);
});

test("native: a clean end after the reason is an end, [DONE] or not", () => {
  expect(pass([began, said("Hi"), finished]).out.at(-1)?.ending).toBe("completed");
});
