import { expect, test } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import { createSseParser } from "#kit/upstream/sse.ts";
import {
  begun,
  expectWhole,
  facts,
  frame,
  inPart,
  message,
  perfect,
  read,
  typesOf,
  usage,
} from "../../../../test/support/responses-streams.ts";
import type { AnswerEvent } from "../port.ts";
import { ResponsesReader } from "./reader.ts";

test("a perfect stream goes on as the bytes that came, but for its response objects", () => {
  const result = read(perfect);
  expectWhole(result);
  expect(typesOf(result.data)).toEqual(typesOf(perfect));
  const chunk = Buffer.from(perfect.map(frame).join(""));
  const reader = new ResponsesReader(facts());
  const out: AnswerEvent[] = [];
  for (const event of createSseParser({ maxEventBytes: 1e6 }).push(chunk)) reader.read(event, out);
  reader.settle(out);
  // The frames are views of the chunk, not copies: nothing was serialized again.
  expect(out.slice(2, 9).map((event) => event.frame.buffer)).toEqual(Array(7).fill(chunk.buffer));
  expect(out.map((event) => event.text).join("")).toBe("Hello");
  expect(out.at(-1)).toMatchObject({
    ending: "completed",
    usage: { inputTokens: 3, cachedInputTokens: 1, outputTokens: 2 },
  });
});

test("a response object has all fields, from upstream, from the request, or by default", () => {
  const { data } = read(perfect);
  const { response } = data.at(-1);
  expect(response).toEqual({
    id: "resp_ours",
    object: "response",
    created_at: 5,
    status: "completed",
    background: false,
    completed_at: 1000,
    error: null,
    incomplete_details: null,
    instructions: "Be kind.",
    max_output_tokens: null,
    max_tool_calls: null,
    model: "chat-1",
    output: [message("Hello")],
    parallel_tool_calls: true,
    previous_response_id: null,
    prompt_cache_key: null,
    reasoning: { effort: null, summary: null },
    safety_identifier: null,
    service_tier: "default",
    store: false,
    temperature: 0.5,
    text: { format: { type: "text" } },
    tool_choice: "auto",
    tools: [],
    top_logprobs: 0,
    top_p: 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    truncation: "disabled",
    usage,
    user: null,
    metadata: {},
  });
});

test("a sparse stream is filled in: beginning, items, parts, ends, arrays, numbers", () => {
  const result = read([
    { type: "response.output_text.delta", delta: "Hel" },
    { type: "response.output_text.delta", delta: "lo" },
    { type: "response.completed", response: { status: "completed" } },
  ]);
  expectWhole(result);
  expect(typesOf(result.data)).toEqual(typesOf(perfect));
  const { response } = result.data.at(-1);
  expect(response.output).toMatchObject([{ type: "message", content: [{ text: "Hello" }] }]);
  expect(response.usage).toBeNull();
  expect(result.out.at(-1)?.usage).toBeUndefined();
  const names = new Set(
    result.data.map((event) => event.item_id ?? event.item?.id).filter(Boolean),
  );
  expect(names.size).toBe(1);
});

test("an item keeps its name through a stream that changes it", () => {
  const renamed = perfect.map((event) => {
    const text = JSON.stringify(event);
    const isLater = /done|completed/.test(event.type);
    return JSON.parse(isLater ? text.replaceAll("msg_1", "msg_other") : text) as JsonObject;
  });
  const result = read(renamed);
  expectWhole(result);
  expect(result.wire).not.toContain("msg_other");
  expect(result.data.at(-1).response.output[0].id).toBe("msg_1");
});

test("wrong numbers and a changing response id are put right: the id is ours", () => {
  const shuffled = perfect.map((event, i) => ({
    ...event,
    sequence_number: 7 * i,
    ...("response" in event ? { response: { ...event.response, id: `resp_${i}` } } : {}),
  }));
  const result = read(shuffled);
  expectWhole(result);
  expect(result.data.at(-1).response.id).toBe("resp_ours");
});

test("events that we do not know pass through, numbered, without upstream's response", () => {
  const novel = { type: "response.telepathy.sensed", output_index: 0, thought: { deep: [1, 2] } };
  const carrying = { type: "response.checkpoint", response: { ...begun, extra: 1 } };
  const events = [...perfect.slice(0, 5), novel, carrying, ...perfect.slice(5)];
  const result = read(events);
  expectWhole(result);
  expect(result.data).toContainEqual({ ...novel, sequence_number: 5 });
  const shown = result.data.find((event) => event.type === "response.checkpoint");
  expect(shown.response).toMatchObject({ instructions: "Be kind.", model: "chat-1" });
  expect(shown.response).not.toHaveProperty("extra");
});

test("items that we do not know pass untouched, unknown fields of the response do not", () => {
  const odd = { id: "x_1", type: "hologram", depth: { z: 1e21 }, note: "\ud800 lone" };
  const events = [
    ...perfect.slice(0, 2),
    { type: "response.output_item.added", output_index: 0, item: odd, sequence_number: 2 },
    { type: "response.output_item.done", output_index: 0, item: odd, sequence_number: 3 },
    {
      type: "response.completed",
      response: { ...begun, status: "completed", output: [odd], usage, novel: { a: 1 } },
    },
  ];
  const result = read(events);
  expectWhole(result);
  expect(result.data.at(-1).response.output).toEqual([odd]);
  expect(result.data.at(-1).response).not.toHaveProperty("novel");
});

test("function calls: arguments are completed, text is counted, ids stay", () => {
  const call = { type: "function_call", call_id: "call_1", name: "f", arguments: "" };
  const result = read([
    { type: "response.created", response: begun },
    { type: "response.output_item.added", output_index: 0, item: call },
    { type: "response.function_call_arguments.delta", output_index: 0, delta: '{"a"' },
    { type: "response.output_item.done", output_index: 0, item: { ...call, arguments: '{"a":1}' } },
    { type: "response.completed", response: { ...begun, output: [], usage } },
  ]);
  expectWhole(result);
  expect(typesOf(result.data).slice(2)).toEqual([
    "output_item.added",
    "function_call_arguments.delta",
    "function_call_arguments.delta",
    "function_call_arguments.done",
    "output_item.done",
    "completed",
  ]);
  expect(result.out.map((event) => event.text).join("")).toBe('f{"a":1}');
  const { output } = result.data.at(-1).response;
  expect(output).toMatchObject([{ call_id: "call_1", arguments: '{"a":1}', status: "completed" }]);
  expect(output[0].id).toBe(result.data[2].item.id);
});

test("what upstream shows only in its last event is streamed after all", () => {
  const reasoning = { id: "rs_1", type: "reasoning", summary: [], encrypted_content: "OPAQUE==" };
  const result = read([
    {
      type: "response.completed",
      response: { ...begun, status: "completed", output: [reasoning, message("Hello")], usage },
    },
  ]);
  expectWhole(result);
  expect(result.out.map((event) => event.text).join("")).toBe("Hello");
  expect(result.out.flatMap((event) => event.opaque ?? [])).toEqual(["OPAQUE=="]);
  const { output } = result.data.at(-1).response;
  expect(output[0]).toEqual(reasoning);
});

test("opaque state passes byte for byte and is named once", () => {
  const state = 'gAAAAB+/=\u2028é\\"';
  const item = { id: "rs_1", type: "reasoning", summary: [], encrypted_content: state };
  const compaction = { id: "cmp_1", type: "compaction", encrypted_content: `${state}2` };
  const result = read([
    { type: "response.created", response: begun },
    { type: "response.output_item.added", output_index: 0, item },
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.output_item.added", output_index: 1, item: compaction },
    { type: "response.output_item.done", output_index: 1, item: compaction },
    { type: "response.completed", response: { ...begun, output: [item, compaction], usage } },
  ]);
  expectWhole(result);
  expect(result.out.flatMap((event) => event.opaque ?? [])).toEqual([state, `${state}2`]);
  expect(result.data.at(-1).response.output).toEqual([item, compaction]);
});

test("reasoning text and summaries are output, and get their parts", () => {
  const result = read([
    { type: "response.created", response: begun },
    { type: "response.reasoning_summary_text.delta", delta: "think " },
    { type: "response.reasoning_text.delta", delta: "deep " },
    { type: "response.output_text.delta", output_index: 1, delta: "said" },
    { type: "response.completed", response: { ...begun, usage } },
  ]);
  expectWhole(result);
  expect(result.out.map((event) => event.text).join("")).toBe("think deep said");
  const { output } = result.data.at(-1).response;
  expect(output).toMatchObject([
    {
      type: "reasoning",
      summary: [{ type: "summary_text", text: "think " }],
      content: [{ type: "reasoning_text", text: "deep " }],
    },
    { type: "message", content: [{ text: "said" }] },
  ]);
});

test("a text that is too long to be kept passes whole, and nothing of it twice", () => {
  const long = "x".repeat(3 * 1024 * 1024);
  const deltas = [long, long].map((delta) => ({
    type: "response.output_text.delta",
    ...inPart,
    delta,
  }));
  const parser = createSseParser({ maxEventBytes: 1e8 });
  const reader = new ResponsesReader(facts());
  const out: AnswerEvent[] = [];
  const done = { type: "response.output_text.done", ...inPart, text: long + long, logprobs: [] };
  const end = { type: "response.completed", response: { ...begun, output: [message("x")] } };
  for (const event of [...deltas, done, end]) {
    for (const read of parser.push(Buffer.from(frame(event)))) reader.read(read, out);
  }
  // The upstream reported no usage.
  reader.end("end", out);
  expect(out.reduce((sum, { text }) => sum + text.length, 0)).toBe(2 * long.length);
  expect(out.at(-1)?.ending).toBe("completed");
});

test("frames with other line ends, other fields or no event line are written anew", () => {
  const lines = perfect.map((event) => `id: 1\r\ndata: ${JSON.stringify(event)}\r\n\r\n`);
  const result = read(lines);
  expectWhole(result);
  expect(typesOf(result.data)).toEqual(typesOf(perfect));
  const split = perfect.map(
    (event) => `data: ${JSON.stringify(event, null, 1).replaceAll("\n", "\ndata: ")}\n\n`,
  );
  expectWhole(read(split));
});

test("the type may be named by the event line alone", () => {
  const result = read(
    perfect.map(({ type, ...rest }) => `event: ${type}\ndata: ${JSON.stringify(rest)}\n\n`),
  );
  expectWhole(result);
  expect(typesOf(result.data)).toEqual(typesOf(perfect));
});

test("output in a first event is shown by no other event either: items come with their own", () => {
  const taken = { ...begun, output: [message("Hello")] };
  for (const type of ["response.created", "response.queued"]) {
    const { data } = read([{ type, response: taken }, perfect.at(-1) ?? {}]);
    const early = data.filter(({ response }) => response && response.status !== "completed");
    expect(early.map(({ type: shown }) => shown)).toContain("response.in_progress");
    expect(early.flatMap(({ response }) => response.output)).toEqual([]);
  }
});
