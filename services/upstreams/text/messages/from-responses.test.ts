import { expect, test } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import { UpstreamFailure } from "../failure.ts";
import { toMessage } from "./answer.ts";
import { carriedIn } from "./carrier.ts";
import { type MessageFacts, MessagesFromResponses } from "./from-responses.ts";
import { eventsOfMessage, MessageCollector } from "./message.ts";
import { messageFacts, readStream } from "./read.fixture.ts";

type End = "end" | "cut";

function read(
  events: readonly JsonObject[],
  more: Partial<MessageFacts> = {},
  end: End | "bound" = "end",
) {
  const shown = readStream(new MessagesFromResponses(messageFacts(more)), events, end);
  for (const frame of shown.wire.split("\n\n").filter(Boolean)) {
    const [name, data] = frame.split("\n");
    expect(name).toBe(`event: ${JSON.parse(`${data}`.slice("data: ".length)).type}`);
  }
  return shown;
}

const at = (output_index: number) => ({ output_index, content_index: 0 });
const created = { type: "response.created", response: { id: "r", model: "up-model" } };
const usage = {
  input_tokens: 100,
  input_tokens_details: { cached_tokens: 60, cache_write_tokens: 10 },
  output_tokens: 7,
  output_tokens_details: { reasoning_tokens: 3 },
};
const completed = (response: JsonObject = {}) => ({
  type: "response.completed",
  response: { usage, ...response },
});
const said = (index: number, delta: string) => ({
  ...{ type: "response.output_text.delta", ...at(index), delta },
});
const whole = (index: number, text: string) => ({
  ...{ type: "response.output_text.done", ...at(index), text },
});
const begun = (index: number, item: JsonObject) => ({
  ...{ type: "response.output_item.added", output_index: index, item },
});
const done = (index: number, item: JsonObject) => ({
  ...{ type: "response.output_item.done", output_index: index, item },
});
const call = (index: number, args = "") => ({
  ...{ type: "function_call", id: `fc_${index}`, call_id: `call_${index}` },
  ...{ name: "get_weather", arguments: args },
});
const more = (index: number, delta: string) => ({
  ...{ type: "response.function_call_arguments.delta", output_index: index, delta },
});
const thought = (index: number, delta: string, summary_index = 0) => ({
  ...{ type: "response.reasoning_summary_text.delta", output_index: index, summary_index, delta },
});
const reasoning = (text: string, state: string | null = "sealed") => ({
  ...{ type: "reasoning", id: "rs_1", encrypted_content: state },
  summary: [{ type: "summary_text", text }],
});

/** The shown events in short. */
const shortOf = (data: JsonObject[]) =>
  data.map(({ type, index, content_block: block, delta }) => {
    const what = { ...(block as object), ...(delta as object) };
    return [`${type}`.replace("content_block_", ""), index, what].filter(
      (one) => one !== undefined && JSON.stringify(one) !== "{}",
    );
  });

test("a text: its block, its deltas, and the end with all usage", () => {
  const { data, text, out } = read([created, said(0, "Hel"), said(0, "lo"), completed()]);
  expect(data[0]).toEqual({
    type: "message_start",
    message: {
      ...{ id: "msg_1", type: "message", role: "assistant", model: "chat-1", content: [] },
      ...{ stop_reason: null, stop_sequence: null, stop_details: null },
      usage: expect.objectContaining({ input_tokens: 0, output_tokens: 0 }),
    },
  });
  expect(shortOf(data.slice(1, -1))).toEqual([
    ["start", 0, { type: "text", text: "", citations: null }],
    ["delta", 0, { type: "text_delta", text: "Hel" }],
    ["delta", 0, { type: "text_delta", text: "lo" }],
    ["stop", 0],
  ]);
  expect(data.at(-1)).toEqual({
    type: "message_delta",
    delta: { stop_reason: "end_turn", stop_sequence: null, stop_details: null },
    usage: {
      ...{ input_tokens: 30, cache_read_input_tokens: 60, cache_creation_input_tokens: 10 },
      cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 0 },
      ...{ output_tokens: 7, output_tokens_details: { thinking_tokens: 3 } },
      ...{ server_tool_use: null, service_tier: null },
    },
  });
  expect(text).toBe("Hello");
  expect(out.at(-1)).toMatchObject({
    ending: "completed",
    usage: { inputTokens: 100, cachedInputTokens: 60, outputTokens: 7 },
  });
});

test("a whole text and a whole call that were not streamed are shown", () => {
  const output = [
    { type: "message", id: "m", content: [{ type: "output_text", text: "Hi" }] },
    call(1, '{"city":"Rome"}'),
  ];
  const { data } = read([completed({ output })]);
  expect(shortOf(data.slice(1, -1))).toEqual([
    ["start", 0, { type: "text", text: "", citations: null }],
    ["delta", 0, { type: "text_delta", text: "Hi" }],
    ["stop", 0],
    ["start", 1, { type: "tool_use", id: "call_1", name: "get_weather", input: {} }],
    ["delta", 1, { type: "input_json_delta", partial_json: '{"city":"Rome"}' }],
    ["stop", 1],
  ]);
  expect(data.at(-1).delta.stop_reason).toBe("tool_use");
  const rest = read([created, said(0, "H"), whole(0, "Hi"), completed({ output })]);
  expect(shortOf(rest.data.slice(1, -1))).toEqual([
    ["start", 0, { type: "text", text: "", citations: null }],
    ["delta", 0, { type: "text_delta", text: "H" }],
    ["delta", 0, { type: "text_delta", text: "i" }],
    ["stop", 0],
    ["start", 1, { type: "tool_use", id: "call_1", name: "get_weather", input: {} }],
    ["delta", 1, { type: "input_json_delta", partial_json: '{"city":"Rome"}' }],
    ["stop", 1],
  ]);
});

test("calls that overlap come one after the other", () => {
  const { data, text } = read([
    created,
    begun(0, call(0)),
    more(0, '{"a":'),
    begun(1, call(1)),
    more(1, '{"b":'),
    more(0, "1}"),
    more(1, "2}"),
    done(1, call(1, '{"b":2}')),
    done(0, call(0, '{"a":1}')),
    completed(),
  ]);
  expect(shortOf(data.slice(1, -1))).toEqual([
    ["start", 0, { type: "tool_use", id: "call_0", name: "get_weather", input: {} }],
    ["delta", 0, { type: "input_json_delta", partial_json: '{"a":' }],
    ["delta", 0, { type: "input_json_delta", partial_json: "1}" }],
    ["stop", 0],
    ["start", 1, { type: "tool_use", id: "call_1", name: "get_weather", input: {} }],
    ["delta", 1, { type: "input_json_delta", partial_json: '{"b":' }],
    ["delta", 1, { type: "input_json_delta", partial_json: "2}" }],
    ["stop", 1],
  ]);
  expect(text).toBe('get_weather{"a":get_weather{"b":1}2}');
});

const thinking = [
  created,
  begun(0, { type: "reasoning", id: "rs_1" }),
  thought(0, "First."),
  thought(0, "Second.", 1),
  done(0, { ...reasoning("First."), summary: [{ text: "First." }, { text: "Second." }] }),
  said(1, "Hi"),
  whole(1, "Hi"),
  completed(),
];

test("thinking carries the state of its item in its signature, which is remembered", () => {
  const { data, out } = read(thinking);
  const [start, ...deltas] = shortOf(data.slice(1, 6));
  expect(start).toEqual(["start", 0, { type: "thinking", thinking: "", signature: "" }]);
  expect(deltas.slice(0, 2)).toEqual([
    ["delta", 0, { type: "thinking_delta", thinking: "First." }],
    ["delta", 0, { type: "thinking_delta", thinking: "\n\nSecond." }],
  ]);
  const { signature } = data[4].delta;
  expect(data[4].delta.type).toBe("signature_delta");
  expect(carriedIn(signature)).toEqual({ id: "rs_1", encrypted_content: "sealed" });
  expect(out.flatMap((event) => event.opaque ?? [])).toEqual([signature]);
});

test("omitted thinking has its signature alone, and hidden thinking is counted only", () => {
  const omitted = read(thinking, { thinking: "omitted" });
  expect(omitted.wire).not.toContain("First.");
  expect(omitted.wire).toContain("signature_delta");
  const hidden = read(thinking, { thinking: "hidden" });
  expect(hidden.wire).not.toContain("thinking_delta");
  expect(hidden.wire).not.toContain("gmr1.");
  expect(hidden.text).toBe("First.Second.Hi");
  expect(hidden.data[1].content_block.type).toBe("text");
});

test("a text ends at a stop sequence, also one in pieces, and is counted to its end", () => {
  const events = [created, said(0, "one E"), said(0, "ND two"), whole(0, "one END two")];
  const { data, text } = read([...events, completed()], { stops: ["STOP", "END"] });
  expect(shortOf(data.slice(1, -1))).toEqual([
    ["start", 0, { type: "text", text: "", citations: null }],
    ["delta", 0, { type: "text_delta", text: "one " }],
    ["stop", 0],
  ]);
  expect(data.at(-1).delta).toMatchObject({ stop_reason: "stop_sequence", stop_sequence: "END" });
  expect(text).toBe("one END two");
  const held = read([created, said(0, "one E"), whole(0, "one E"), completed()], {
    stops: ["END"],
  });
  expect(held.wire).toContain('"text":"E"');
  expect(held.data.at(-1).delta.stop_reason).toBe("end_turn");
});

test.for([
  [{ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } }, "max_tokens"],
  [{ status: "incomplete", incomplete_details: { reason: "content_filter" } }, "refusal"],
])("%j ends as %s", ([response, reason]) => {
  const last = { type: "response.incomplete", response: response as JsonObject };
  const { data, out } = read([created, said(0, "Hi"), last]);
  expect(data.at(-1).delta.stop_reason).toBe(reason);
  expect(out.at(-1)?.ending).toBe("incomplete");
});

test("a refusal is text, and says so at its end", () => {
  const refused = { type: "response.refusal.delta", ...at(0), delta: "No." };
  const { data } = read([created, refused, completed()]);
  expect(data[2].delta).toEqual({ type: "text_delta", text: "No." });
  expect(data.at(-1).delta).toMatchObject({
    stop_reason: "refusal",
    stop_details: { type: "refusal", category: null, explanation: null },
  });
});

test("an answer at its bound ends as max_tokens; a broken one with an error", () => {
  const events = [created, said(0, "Hi")];
  expect(read(events, {}, "bound").data.at(-1).delta.stop_reason).toBe("max_tokens");
  const { data, out } = read(events, {}, "cut");
  expect(data.at(-1)).toEqual({
    type: "error",
    error: {
      ...{ type: "api_error", code: "model_request_failed" },
      message: expect.stringMatching(/model/),
    },
  });
  expect(out.at(-1)?.ending).toBe("failed");
  const failed = { type: "response.failed", response: { error: { message: "their words" } } };
  expect(read([...events, failed]).wire).not.toContain("their words");
  expect(() => read([failed])).toThrow(UpstreamFailure);
});

test("a whole answer is the message that its stream adds up to, and gives that stream again", () => {
  const output = [
    reasoning("First."),
    { type: "message", id: "m", content: [{ type: "output_text", text: "Hi" }] },
    call(2, '{"city":"Rome"}'),
  ];
  const object = { id: "r", status: "completed", output, usage };
  const answer = toMessage(
    { object, ending: "completed", usage: undefined, outputText: "", opaque: ["sealed"] },
    messageFacts(),
  );
  const message = answer.object;
  const [thinkingBlock] = message.content as JsonObject[];
  expect(message).toMatchObject({
    ...{ id: "msg_1", type: "message", model: "chat-1", stop_reason: "tool_use" },
    content: [
      { type: "thinking", thinking: "First.", signature: expect.stringMatching(/^gmr1\./) },
      { type: "text", text: "Hi" },
      { type: "tool_use", id: "call_2", name: "get_weather", input: { city: "Rome" } },
    ],
    usage: { input_tokens: 30, output_tokens: 7 },
  });
  expect(answer.opaque).toEqual([thinkingBlock?.signature]);
  const collector = new MessageCollector();
  for (const event of eventsOfMessage(message)) collector.add(event);
  expect(collector.message()).toEqual(message);
});

test("arguments that are no object are streamed as they are, and empty in a message", () => {
  const object = { status: "completed", output: [call(0, '{"a":')], usage };
  const { data } = read([completed(object)]);
  expect(data[2].delta.partial_json).toBe('{"a":');
  const answer = toMessage(
    { object, ending: "completed", usage: undefined, outputText: "", opaque: [] },
    messageFacts(),
  );
  expect(answer.object.content).toMatchObject([{ type: "tool_use", input: {} }]);
});
