import { afterAll, describe, expect, test } from "vitest";
import type { Caller } from "./caller.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

// State that a model wants back in the next turn. Gemini 3 refuses the turn without it.
const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

const path = "/chat/completions";
const question = { role: "user", content: "Look." };
const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const called = { name: "look", arguments: "{}" };
const call = { id: "call_1", type: "function", function: called };
let made = 0;
const seal = () => `sealed/${++made}+==`;

/** In the form of OpenRouter and Gemini's servers: index 0 for text and seal, and a seal beside each call. */
const reasoning = (data: string) => ({
  reasoning_details: [
    { type: "reasoning.text", text: "I look. ", format: "google-gemini-v1", index: 0 },
    { type: "reasoning.encrypted", data, id: "call_1", format: "google-gemini-v1", index: 0 },
  ],
});
type State = { message?: Record<string, unknown>; call?: object };
const states: [string, (data: string) => State][] = [
  ["reasoning_details", (data) => ({ message: reasoning(data) })],
  [
    "extra_content.google of a call",
    (data) => ({ call: { extra_content: { google: { thought_signature: data } } } }),
  ],
  [
    "extra_content.vertex of a call",
    (data) => ({ call: { extra_content: { vertex: { thought_signature: data } } } }),
  ],
  [
    "extra_content of a message",
    (data) => ({ message: { extra_content: { google: { thought_signature: data } } } }),
  ],
  ["thought_signature of a message", (data) => ({ message: { thought_signature: data } })],
  ["thought_signature of a call", (data) => ({ call: { thought_signature: data } })],
  [
    "thought_signature of a function",
    (data) => ({ call: { function: { ...called, thought_signature: data } } }),
  ],
];

/** An answer with a call in the form of a chat server: whole, or in chunks. */
function native({ message, call: beside }: State, isStream: boolean) {
  const said = { role: "assistant", content: null, ...message };
  const head = { id: "up", object: "chat.completion", created: 1, model: "up" };
  const calls = [{ ...call, ...beside }];
  if (!isStream) {
    const choice = {
      index: 0,
      message: { ...said, tool_calls: calls },
      finish_reason: "tool_calls",
    };
    return { kind: "json", body: { ...head, choices: [choice], usage } } as const;
  }
  const chunk = (delta: object, finish: string | null = null) => ({
    ...{ ...head, object: "chat.completion.chunk" },
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  const indexed = calls.map((one, index) => ({ index, ...one }));
  const events = [
    chunk({ role: "assistant", content: "" }),
    ...(message ? pieces(message).map((piece) => chunk(piece)) : []),
    chunk({ tool_calls: indexed }),
    { ...chunk({}, "tool_calls"), usage },
  ];
  return { kind: "events", events, done: true } as const;
}

/** Each entry has a delta of its own, and a text has two. */
function pieces(message: Record<string, unknown>): object[] {
  const details = message.reasoning_details as { text?: string }[] | undefined;
  if (!details) return [message];
  return details.flatMap(({ text, ...rest }) => {
    const parts =
      text === undefined ? [{}] : [text.slice(0, 3), text.slice(3)].map((text) => ({ text }));
    return parts.map((part) => ({ reasoning_details: [{ ...rest, ...part }] }));
  });
}

/** The message that a client puts together from a stream by OpenRouter's rules: by index and type, and calls by index. */
function collected(events: readonly { json?: unknown }[]) {
  const message: Record<string, unknown> = { role: "assistant", content: null };
  const details: Record<string, unknown>[] = [];
  const calls: Record<string, unknown>[] = [];
  // biome-ignore lint/suspicious/noExplicitAny: events of every shape.
  for (const { choices } of events.map(({ json }) => json as any).filter((one) => one?.choices)) {
    for (const { delta } of choices) {
      for (const name of ["extra_content", "thought_signature"]) {
        if (name in delta) message[name] = delta[name];
      }
      for (const detail of delta.reasoning_details ?? []) {
        const last = details.at(-1);
        const goesOn = detail.text && last?.type === detail.type && last?.index === detail.index;
        if (goesOn) Object.assign(last ?? {}, { text: `${last?.text}${detail.text}` });
        else details.push(detail);
      }
      for (const { index, ...rest } of delta.tool_calls ?? []) {
        const args = (calls[index]?.function as { arguments?: string })?.arguments ?? "";
        const said = { ...(calls[index]?.function as object), ...rest.function };
        said.arguments = args + (rest.function?.arguments ?? "");
        calls[index] = { ...calls[index], ...rest, function: said };
      }
    }
  }
  if (details.length > 0) message.reasoning_details = details;
  return { ...message, tool_calls: calls };
}

async function answerOf(caller: Caller, model: string, isStream: boolean, key?: string) {
  const body = { model, messages: [question] };
  const options = key === undefined ? {} : { idempotencyKey: key };
  if (isStream) return collected(await caller.stream(path, body, options));
  return (await caller.post(path, body, options)).json.choices[0].message;
}

/** The part of the request upstream in the turn after a call. */
async function sentBack(caller: Caller, model: string, message: object) {
  const seen = world.play();
  const result = { role: "tool", tool_call_id: "call_1", content: "blue" };
  const messages = [question, message, result];
  const { status, text } = await caller.post(path, { model, messages });
  if (status !== 200) throw new Error(text);
  return seen[0]?.body;
}

const ways = states.flatMap(([name, stateWith]) =>
  ["legacy", "peer"].flatMap((model) =>
    [false, true].map(
      (isStream) => [name, model, isStream ? "stream" : "json", stateWith] as const,
    ),
  ),
);

describe("of a chat server comes to the caller and goes back", () => {
  test.for(ways)("%s, %s, %s", async ([_name, model, form, stateWith]) => {
    const caller = await world.caller();
    const state = stateWith(seal());
    world.upstream.script((seen) => native(state, seen.body.stream === true));
    const message = await answerOf(caller, model, form === "stream");
    const expected = { ...state.message, tool_calls: [{ ...call, ...state.call }] };
    expect(message).toMatchObject(expected);
    const { messages } = await sentBack(caller, model, message);
    expect(messages.at(-2)).toMatchObject(expected);
  });

  test.for(ways.filter(([, model]) => model === "legacy"))(
    "and of a kept answer: %s, %s, %s",
    async ([_name, model, form, stateWith]) => {
      const caller = await world.caller();
      const state = stateWith(seal());
      const seen = world.play();
      world.upstream.script((seen) => native(state, seen.body.stream === true));
      await answerOf(caller, model, form === "stream", "once");
      const expected = { ...state.message, tool_calls: [{ ...call, ...state.call }] };
      for (const isStream of [false, true]) {
        expect(await answerOf(caller, model, isStream, "once")).toMatchObject(expected);
      }
      expect(seen).toHaveLength(1);
    },
  );
});

describe("on the Responses protocol", () => {
  const item = { type: "function_call", id: "fc_1", call_id: "call_1", ...called };
  const reasoningItem = (data: string) => ({
    ...{ type: "reasoning", id: "rs_1", summary: [], encrypted_content: data },
  });
  const used = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };
  /** Items in the form of a server. The sealed part comes with an item's end. */
  function translated(items: Record<string, unknown>[], isStream: boolean) {
    const response = {
      id: "up",
      object: "response",
      created_at: 1,
      status: "completed",
      usage: used,
    };
    if (!isStream) return { kind: "json", body: { ...response, output: items } } as const;
    const events = [
      { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
      ...items.flatMap((one, index) => {
        const { encrypted_content: _e, extra_content: _x, thought_signature: _t, ...begun } = one;
        return [
          { type: "response.output_item.added", output_index: index, item: begun },
          { type: "response.output_item.done", output_index: index, item: one },
        ];
      }),
      { type: "response.completed", response: { ...response, output: items } },
    ];
    return { kind: "events", events, done: true } as const;
  }

  test.for(["json", "stream"])("sealed reasoning, %s", async (form) => {
    const caller = await world.caller();
    const data = seal();
    world.upstream.script((seen) => translated([reasoningItem(data), item], !!seen.body.stream));
    const message = await answerOf(caller, "scripted", form === "stream");
    expect(message.reasoning_details).toEqual([
      { type: "reasoning.encrypted", id: "rs_1", format: "openai-responses-v1", index: 0, data },
    ]);
    const { input } = await sentBack(caller, "scripted", message);
    expect(input.slice(-3, -1)).toEqual([reasoningItem(data), { ...item, id: undefined }]);
  });

  const signature = { extra_content: { google: { thought_signature: "sig" } } };
  test.for(
    [signature, { thought_signature: "sig" }].flatMap((state) =>
      ["json", "stream"].map((form) => [state, form] as const),
    ),
  )("%j of a call and of a message, %s", async ([state, form]) => {
    const caller = await world.caller();
    const said = { type: "message", id: "msg_1", role: "assistant" };
    const content = [{ type: "output_text", text: "I look.", annotations: [] }];
    const items = [
      { ...said, content, ...state },
      { ...item, ...state },
    ];
    world.upstream.script((seen) => translated(items, !!seen.body.stream));
    const message = await answerOf(caller, "scripted", form === "stream");
    expect(message).toMatchObject({ ...state, tool_calls: [{ ...call, ...state }] });
    const { input } = await sentBack(caller, "scripted", { ...message, content: "I look." });
    expect(input.slice(-3, -1)).toMatchObject([
      { type: "message", content: "I look.", ...state },
      { type: "function_call", call_id: "call_1", ...state },
    ]);
  });

  test("what another protocol sealed has no form there, and stays here", async () => {
    const caller = await world.caller();
    const message = { role: "assistant", content: null, tool_calls: [call], ...reasoning(seal()) };
    const { input } = await sentBack(caller, "scripted", message);
    expect(input.map(({ type }: { type: string }) => type)).not.toContain("reasoning");
  });
});

describe("sealed reasoning", () => {
  const answering = (data: string) =>
    world.upstream.script((seen) => native({ message: reasoning(data) }, !!seen.body.stream));
  const details = (body: { messages: { reasoning_details?: { type: string }[] }[] }) =>
    body.messages.at(-2)?.reasoning_details?.map(({ type }) => type);

  test.for([false, true])("of another account does not go up (stream: %s)", async (isStream) => {
    const [owner, other] = [await world.caller(), await world.caller()];
    answering(seal());
    const message = await answerOf(owner, "legacy", isStream);
    expect(details(await sentBack(owner, "legacy", message))).toHaveLength(2);
    expect(details(await sentBack(other, "legacy", message))).toEqual(["reasoning.text"]);
  });

  test("does not go to another model's upstream, and the turn is answered", async () => {
    const caller = await world.caller();
    answering(seal());
    const message = await answerOf(caller, "legacy", false);
    expect(details(await sentBack(caller, "peer", message))).toEqual(["reasoning.text"]);
  });
});
