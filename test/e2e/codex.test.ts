import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { type Frame, openSocket, refusedSocket } from "../support/caller-socket.ts";
import {
  type CodexForm,
  codexCommand,
  codexHeaders,
  codexKnownModel,
  codexResult,
  codexUnknownModel,
} from "../support/sessions/codex.ts";
import { startAnthropic } from "../support/upstreams/anthropic.ts";
import { chat } from "./catalog.ts";
import { claudeKey, withClaude } from "./claude-world.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

// Sessions of Codex at each kind of upstream. Each event is compared with that of OpenAI's API: its name, place and fields.

ownWorldOnly();
const double = await startAnthropic({ key: claudeKey });
const world = await startWorld(
  withClaude(double, [chat("claude", { upstream: "claude", upstreamModel: "up-model" })]),
);
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await double[Symbol.asyncDispose]();
});
beforeEach(() => {
  let asked = 0;
  const call = codexCommand;
  world.play(() =>
    asked++ === 0 ? { kind: "ok", call, encrypted: "sealed-state" } : { kind: "ok" },
  );
  const input = JSON.parse(call.arguments);
  const thinking = { type: "thinking", thinking: "", signature: "c2ln" };
  const use = { type: "tool_use", id: "call_up_1", name: call.name, input };
  double.answers.splice(0, double.answers.length, { content: [thinking, use] });
});

const id = expect.any(String);
const count = expect.any(Number);
/** The fields of a response of OpenAI's API, with the values that they have in each of these answers. */
const response = {
  ...{ id: expect.stringMatching(/^resp_/), object: "response", created_at: count },
  ...{ background: false, error: null, incomplete_details: null, instructions: null },
  ...{ max_output_tokens: null, max_tool_calls: null, parallel_tool_calls: expect.any(Boolean) },
  ...{ previous_response_id: null, prompt_cache_key: id, reasoning: expect.any(Object) },
  ...{ safety_identifier: null, service_tier: "default", store: false, temperature: 1 },
  ...{ text: expect.any(Object), tool_choice: "auto", tools: expect.any(Array) },
  ...{ top_logprobs: 0, top_p: 1, presence_penalty: 0, frequency_penalty: 0 },
  ...{ truncation: "disabled", user: null, metadata: {} },
};
const usage = {
  ...{ input_tokens: count, output_tokens: count, total_tokens: count },
  input_tokens_details: { cached_tokens: 0 },
  output_tokens_details: { reasoning_tokens: 0 },
  ...{ cost: count, costUsdMicros: count },
};
const written = { cached_tokens: 0, cache_write_tokens: 0 };
type Item = Record<string, unknown> & { type: string };
const thought: Item = { type: "reasoning", id, summary: [], encrypted_content: id };
const call: Item = { type: "function_call", id, call_id: id, status: "completed", ...codexCommand };
const part = (text: unknown) => ({ type: "output_text", text, annotations: [], logprobs: [] });
const said = (text: unknown): Item => ({
  ...{ type: "message", id, status: "completed", role: "assistant", content: [part(text)] },
});

/** The events of an item. Deltas in a row are one here. Messages gives the state of thinking only at its end. */
function eventsOf(item: Item, output_index: number, isMessages: boolean): object[] {
  const done = { type: "response.output_item.done", output_index, item };
  const added = (fields: object) => ({
    ...{ type: "response.output_item.added", output_index },
    item: { ...item, ...fields },
  });
  const at = { output_index, item_id: id };
  if (item.type === "reasoning")
    return [added(isMessages ? { encrypted_content: undefined } : {}), done];
  if (item.type === "function_call") {
    const { arguments: whole } = codexCommand;
    return [
      added({ status: "in_progress", arguments: "" }),
      { type: "response.function_call_arguments.delta", ...at, delta: whole },
      { type: "response.function_call_arguments.done", ...at, arguments: whole },
      done,
    ];
  }
  const [{ text }] = item.content as [{ text: unknown }];
  const inPart = { ...at, content_index: 0 };
  return [
    added({ status: "in_progress", content: [] }),
    { type: "response.content_part.added", ...inPart, part: part("") },
    { type: "response.output_text.delta", ...inPart, delta: text, logprobs: [] },
    { type: "response.output_text.done", ...inPart, text, logprobs: [] },
    { type: "response.content_part.done", ...inPart, part: part(text) },
    done,
  ];
}

/** All events of a response with these items, as OpenAI's API sends them. */
function answerOf(model: string, output: readonly Item[]): object[] {
  const isMessages = model === "claude";
  const begun = {
    ...{ ...response, model, status: "in_progress" },
    ...{ output: [], usage: null, completed_at: null },
  };
  return [
    { type: "response.created", response: begun },
    { type: "response.in_progress", response: begun },
    ...output.flatMap((item, index) => eventsOf(item, index, isMessages)),
    {
      type: "response.completed",
      response: {
        ...{ ...response, model, status: "completed", output, completed_at: count },
        usage: isMessages ? { ...usage, input_tokens_details: written } : usage,
      },
    },
  ];
}

/** Events without their numbers, which must count from 0, and without the headers of the last one. Deltas in a row are one. */
function joined(events: readonly Frame[]): object[] {
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual([...events.keys()]);
  const all: Frame[] = [];
  for (const { sequence_number: _, headers, ...event } of events) {
    const last = all.at(-1);
    if (headers) expect(headers["x-request-id"]).toMatch(/^req_/);
    if (event.type.endsWith(".delta") && last?.type === event.type) {
      last.delta = `${last.delta}${event.delta}`;
    } else all.push(event);
  }
  return all;
}

const endOf = (events: readonly Frame[]) => events.at(-1)?.response;
/** A socket of Codex, and a request of it. */
async function codex(model: string, form: CodexForm) {
  const caller = await world.caller();
  const socket = await openSocket(caller.baseUrl, caller.key, { headers: codexHeaders });
  const ask = (fields: object) => socket.create({ model, stream: true, ...form.fields, ...fields });
  return { caller, ask, [Symbol.dispose]: () => socket[Symbol.dispose]() };
}

describe.for([
  {
    model: "scripted",
    protocol: "Responses",
    name: "a model that it knows",
    form: codexKnownModel,
  },
  { model: "scripted", protocol: "Responses", name: "another model", form: codexUnknownModel },
  { model: "claude", protocol: "Messages", name: "another model", form: codexUnknownModel },
])("a session of $name at an upstream of $protocol", ({ model, form }) => {
  const sent = () =>
    (model === "claude" ? double.seen("messages") : world.upstream.requests).map(({ raw }) =>
      raw.toString(),
    );

  test("warms up, runs a command, and goes on, over its socket", async () => {
    using session = await codex(model, form);
    const { caller, ask } = session;
    const before = sent().length;
    const warm = await ask({ input: form.warmUp, generate: false });
    expect(warm.map(({ type }) => type)).toEqual(["response.created", "response.completed"]);
    expect(endOf(warm)).toMatchObject({ output: [], usage: { total_tokens: 0, cost: 0 } });
    expect(sent()).toHaveLength(before);
    const first = await ask({ input: form.begin, previous_response_id: endOf(warm)?.id });
    expect(joined(first)).toEqual(answerOf(model, [thought, call]));
    const called = endOf(first)?.output.at(-1);
    const input = [codexResult(called?.call_id)];
    const second = await ask({ input, previous_response_id: endOf(first)?.id });
    expect(joined(second)).toEqual(answerOf(model, [said("Hello from upstream.")]));
    const [began, again] = sent().slice(before);
    // The second request has the first one's bytes, the answer with its state, and the result.
    const state = model === "claude" ? "c2ln" : "sealed-state";
    expect(began).toContain("Read a.txt and tell the colour.");
    for (const word of ["Read a.txt and tell the colour.", state, "the lamp is green"]) {
      expect(again).toContain(word);
    }
    expect(`${began}${again}`).not.toMatch(/client_metadata|x-codex|metadata_passthrough/);
    expect(await caller.settled()).toMatchObject({ monthSpend: 60, reserved: 0 });
  });

  test("is the same over HTTP, event for event", async () => {
    const caller = await world.caller();
    const ask = async (input: readonly object[]) => {
      const body = { model, ...form.fields, input };
      const events = await caller.stream("/responses", body, { headers: codexHeaders });
      expect(events.pop()?.data).toBe("[DONE]");
      expect(events.every(({ name, json }) => name === json.type)).toBe(true);
      return events.map(({ json }): Frame => json);
    };
    const begin = [...form.warmUp, ...form.begin];
    const first = await ask(begin);
    expect(joined(first)).toEqual(answerOf(model, [thought, call]));
    const output = endOf(first)?.output ?? [];
    const second = await ask([...begin, ...output, codexResult(output.at(-1)?.call_id)]);
    expect(joined(second)).toEqual(answerOf(model, [said("Hello from upstream.")]));
  });
});

test("the built-in model answers in the same events", async () => {
  using session = await codex("chat-1", codexUnknownModel);
  const input = [...codexUnknownModel.warmUp, ...codexUnknownModel.begin];
  const events = await session.ask({ input });
  const text = endOf(events)?.output.at(-1)?.content as [{ text: string }];
  expect(joined(events)).toEqual(answerOf("chat-1", [thought, said(text[0].text)]));
});

test("a model that cannot serve it is refused by name, and the socket stays", async () => {
  const grammar = await refusedTurn("claude", codexKnownModel);
  expect(grammar).toMatchObject({ status: 400, error: { code: "unsupported_parameter" } });
  const chatOnly = await refusedTurn("legacy", codexUnknownModel);
  expect(chatOnly).toMatchObject({ status: 400, error: { code: "model_not_responses_capable" } });
});

/** The error that a first turn gets. */
async function refusedTurn(model: string, form: CodexForm): Promise<Frame | undefined> {
  using session = await codex(model, form);
  const events = await session.ask({ input: form.begin });
  const warm = await session.ask({ model: "scripted", input: [], generate: false });
  expect(warm.at(-1)?.type).toBe("response.completed");
  return events.at(-1);
}

test("without sockets, its upgrade is answered 426, upon which it asks over HTTP", async () => {
  await using plain = await startWorld({ env: { GENMESH_WEBSOCKETS: "off" } });
  const caller = await plain.caller();
  const authorization = `Bearer ${caller.key}`;
  const refused = await refusedSocket(caller.baseUrl, { ...codexHeaders, authorization });
  expect(refused).toMatchObject({
    status: 426,
    body: { error: { code: "websocket_unsupported" } },
  });
  const input = [...codexUnknownModel.warmUp, ...codexUnknownModel.begin];
  const body = { model: "scripted", ...codexUnknownModel.fields, input };
  const events = await caller.stream("/responses", body, { headers: codexHeaders });
  expect(events.at(-2)?.name).toBe("response.completed");
});
