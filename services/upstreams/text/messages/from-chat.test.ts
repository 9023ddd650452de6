import { expect, test } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import { UpstreamFailure } from "../failure.ts";
import { messageOfCompletion } from "./answer.ts";
import { MessagesFromChat } from "./from-chat.ts";
import type { MessageFacts } from "./from-responses.ts";
import { eventsOfMessage } from "./message.ts";
import { messageFacts, readStream } from "./read.fixture.ts";

const nowS = () => 1_000;
const read = (
  chunks: readonly (JsonObject | string)[],
  more: Partial<MessageFacts> = {},
  end: "end" | "cut" | "bound" = "end",
) => readStream(new MessagesFromChat(messageFacts(more), nowS), chunks, end);

const chunk = (delta: JsonObject, finish_reason: string | null = null): JsonObject => ({
  ...{ id: "c", object: "chat.completion.chunk", created: 5, model: "up-model" },
  choices: [{ index: 0, delta, finish_reason }],
});
const usage = {
  ...{ prompt_tokens: 100, completion_tokens: 7, total_tokens: 107 },
  prompt_tokens_details: { cached_tokens: 60 },
};
const used = { ...chunk({}), choices: [], usage };
const ended = (reason = "stop") => [chunk({}, reason), used, "[DONE]"];
const call = (index: number, more: JsonObject, id?: string) => ({
  tool_calls: [{ index, ...(id ? { id, type: "function" } : {}), function: more }],
});

/** The shown events in short. */
const shortOf = (data: JsonObject[]) =>
  data.map(({ type, index, content_block: block, delta }) => {
    const what = { ...(block as object), ...(delta as object) };
    return [`${type}`.replace("content_block_", ""), index, what].filter(
      (one) => one !== undefined && JSON.stringify(one) !== "{}",
    );
  });

test("thinking, text and calls are blocks in their order, and usage comes at the end", () => {
  const { data, text, out } = read([
    chunk({ role: "assistant", content: "" }),
    chunk({ reasoning_content: "Hm." }),
    chunk({ content: "I lo" }),
    chunk({ content: "ok." }),
    chunk(call(0, { name: "get", arguments: "" }, "call_a")),
    chunk(call(0, { arguments: '{"a":1}' })),
    chunk(call(1, { name: "get", arguments: "{}" }, "call_b")),
    ...ended("tool_calls"),
  ]);
  expect(shortOf(data.slice(1, -1))).toEqual([
    ["start", 0, { type: "thinking", thinking: "", signature: "" }],
    ["delta", 0, { type: "thinking_delta", thinking: "Hm." }],
    ["stop", 0],
    ["start", 1, { type: "text", text: "", citations: null }],
    ["delta", 1, { type: "text_delta", text: "I lo" }],
    ["delta", 1, { type: "text_delta", text: "ok." }],
    ["stop", 1],
    ["start", 2, { type: "tool_use", id: "call_a", name: "get", input: {} }],
    ["delta", 2, { type: "input_json_delta", partial_json: '{"a":1}' }],
    ["stop", 2],
    ["start", 3, { type: "tool_use", id: "call_b", name: "get", input: {} }],
    ["delta", 3, { type: "input_json_delta", partial_json: "{}" }],
    ["stop", 3],
  ]);
  expect(data.at(-1)).toMatchObject({
    delta: { stop_reason: "tool_use" },
    usage: { input_tokens: 40, cache_read_input_tokens: 60, output_tokens: 7 },
  });
  expect(text).toBe('Hm.I look.get{"a":1}get{}');
  expect(out.at(-1)).toMatchObject({ ending: "completed", usage: { inputTokens: 100 } });
});

test("hidden thinking is counted only", () => {
  const chunks = [chunk({ reasoning: "Hm." }), chunk({ content: "Hi" }), ...ended()];
  const { wire, text } = read(chunks, { thinking: "hidden" });
  expect(wire).not.toContain("Hm.");
  expect(text).toBe("Hm.Hi");
});

test.for([
  ["stop", "end_turn", "completed"],
  ["length", "max_tokens", "incomplete"],
  ["content_filter", "refusal", "incomplete"],
])("%s ends as %s", ([finish, reason, ending]) => {
  const { data, out } = read([chunk({ content: "Hi" }), ...ended(finish)]);
  expect(data.at(-1).delta.stop_reason).toBe(reason);
  expect(out.at(-1)?.ending).toBe(ending);
});

test("a text ends at a stop sequence, and is counted to its end", () => {
  const chunks = [chunk({ content: "one E" }), chunk({ content: "ND two" }), ...ended()];
  const { data, text } = read(chunks, { stops: ["END"] });
  expect(shortOf(data.slice(1, -1))).toEqual([
    ["start", 0, { type: "text", text: "", citations: null }],
    ["delta", 0, { type: "text_delta", text: "one " }],
    ["stop", 0],
  ]);
  expect(data.at(-1).delta).toMatchObject({ stop_reason: "stop_sequence", stop_sequence: "END" });
  expect(text).toBe("one END two");
  const held = read([chunk({ content: "one E" }), ...ended()], { stops: ["END"] });
  expect(held.wire).toContain('"text":"E"');
});

test("an answer at its bound ends as max_tokens; a broken one with an error", () => {
  const begun = [chunk({ content: "Hi" })];
  expect(read(begun, {}, "bound").data.at(-1).delta.stop_reason).toBe("max_tokens");
  const { data, out } = read(begun, {}, "cut");
  expect(data.at(-1)).toMatchObject({ type: "error", error: { type: "api_error" } });
  expect(out.at(-1)?.ending).toBe("failed");
  const failed = { error: { message: "their words" } };
  expect(read([...begun, failed]).wire).not.toContain("their words");
  expect(() => read([failed])).toThrow(UpstreamFailure);
});

test("a whole completion is a message", () => {
  const found = {
    ...{ id: "c", object: "chat.completion", created: 5, model: "up-model", usage },
    choices: [
      {
        ...{ index: 0, finish_reason: "stop" },
        message: {
          ...{ role: "assistant", content: "Hi", reasoning_content: "Hm." },
          tool_calls: [
            { id: "call_a", type: "function", function: { name: "get", arguments: '{"a":1}' } },
          ],
        },
      },
    ],
  };
  const chat = { id: "msg_1", modelId: "chat-1", nowS, withUsage: true };
  const answer = messageOfCompletion(found, { chat, message: () => messageFacts() });
  expect(answer).toMatchObject({
    ...{ ending: "completed", usage: { inputTokens: 100, outputTokens: 7 } },
    object: {
      ...{ id: "msg_1", type: "message", model: "chat-1", stop_reason: "tool_use" },
      content: [
        { type: "thinking", thinking: "Hm.", signature: "" },
        { type: "text", text: "Hi" },
        { type: "tool_use", id: "call_a", name: "get", input: { a: 1 } },
      ],
      usage: { input_tokens: 40, output_tokens: 7 },
    },
  });
});

const numbers = '{"at": 1.50, "n": 1e3, "id": 12345678901234567890}';
const cut = '{"city":"Ro';

test.each([
  [numbers, numbers.replaceAll(" ", ""), numbers.replaceAll(" ", "")],
  [cut, `{"INVALID_JSON":${JSON.stringify(cut)}}`, cut],
  ["[1]", '{"INVALID_JSON":"[1]"}', "[1]"],
  ["", "{}", "{}"],
])("arguments %s are the input %s of a whole message", (text, input, again) => {
  const calls = [{ id: "call_a", type: "function", function: { name: "get", arguments: text } }];
  const message = { role: "assistant", content: null, tool_calls: calls };
  const found = { object: "chat.completion", choices: [{ message, finish_reason: "tool_calls" }] };
  const chat = { id: "c", modelId: "chat-1", nowS, withUsage: true };
  const { object } = messageOfCompletion(found, { chat, message: () => messageFacts() });
  const { content } = object as { content: JsonObject[] };
  expect(JSON.stringify(content[0]?.input)).toBe(input);
  const piecesOf = (events: JsonObject[]) =>
    events.map(({ delta }) => (delta as JsonObject | undefined)?.partial_json ?? "").join("");
  const { data } = read([chunk(call(0, { name: "get", arguments: text }, "call_a")), ...ended()]);
  expect(piecesOf(data)).toBe(text);
  expect(piecesOf([...eventsOfMessage({ content })])).toBe(again);
});
