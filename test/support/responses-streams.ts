import { expect } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import { createSseParser } from "#kit/upstream/sse.ts";
import type { AnswerEvent } from "../../services/upstreams/text/port.ts";
import type { ResponseFacts } from "../../services/upstreams/text/responses/complete-response.ts";
import { ResponsesReader } from "../../services/upstreams/text/responses/reader.ts";
import { readEvents } from "./text-requests.ts";

/** The facts about all answers here. */
export function facts(changes: Partial<ResponseFacts> = {}): ResponseFacts {
  let made = 0;
  return {
    id: "resp_ours",
    modelId: "chat-1",
    callerInstructions: "Be kind.",
    body: { model: "chat-1", input: "Hi", temperature: 0.5 },
    nowS: () => 1000,
    newId: (prefix) => `${prefix}_made${++made}`,
    ...changes,
  };
}

/** An event in the form of the wire. */
export const frame = (event: JsonObject) =>
  `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;

/** Reads events (or raw text) as one chunk. `end` is the way in which the bytes ended. */
export function read(
  events: readonly (JsonObject | string)[],
  { end = "end" as "end" | "cut" | "timeout", given = facts() } = {},
) {
  const reader = new ResponsesReader(given);
  const out: AnswerEvent[] = [];
  const text = events.map((event) => (typeof event === "string" ? event : frame(event))).join("");
  for (const event of createSseParser({ maxEventBytes: 1e6 }).push(Buffer.from(text))) {
    reader.read(event, out);
  }
  reader.settle(out);
  reader.end(end, out);
  return { out, ...readEvents(out) };
}

/** The start of a response, which repeats the prompt. */
export const begun = {
  id: "resp_1",
  object: "response",
  created_at: 5,
  status: "in_progress",
  model: "up-model",
  instructions: "SECRET PROMPT\n\nBe kind.",
  output: [],
  // A property that servers add. It repeats the prompt.
  input: [{ role: "system", content: "SECRET PROMPT" }],
  input_messages: [{ content: "SECRET PROMPT" }],
};
/** The only item. */
export const message = (text: string, status = "completed") => ({
  id: "msg_1",
  type: "message",
  status,
  role: "assistant",
  content: text ? [{ type: "output_text", text, annotations: [], logprobs: [] }] : [],
});
/** The reported usage. */
export const usage = {
  input_tokens: 3,
  input_tokens_details: { cached_tokens: 1 },
  output_tokens: 2,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 5,
};
/** The place of the text. */
export const inPart = { item_id: "msg_1", output_index: 0, content_index: 0 };
/** A part of the item. */
export const part = (text: string) => ({
  type: "output_text",
  text,
  annotations: [],
  logprobs: [],
});

/** A perfect stream of the official service. */
export const perfect = [
  { type: "response.created", response: begun },
  { type: "response.in_progress", response: begun },
  { type: "response.output_item.added", output_index: 0, item: message("", "in_progress") },
  { type: "response.content_part.added", ...inPart, part: part("") },
  { type: "response.output_text.delta", ...inPart, delta: "Hel", logprobs: [] },
  { type: "response.output_text.delta", ...inPart, delta: "lo", logprobs: [], obfuscation: "x" },
  { type: "response.output_text.done", ...inPart, text: "Hello", logprobs: [] },
  { type: "response.content_part.done", ...inPart, part: part("Hello") },
  { type: "response.output_item.done", output_index: 0, item: message("Hello") },
  {
    type: "response.completed",
    response: { ...begun, status: "completed", output: [message("Hello")], usage },
  },
].map((event, sequence_number) => ({ ...event, sequence_number }));

/** Checks the rules of every outgoing stream. */
export function expectWhole({ out, data, wire }: ReturnType<typeof read>): void {
  expect(data.map((event) => event.sequence_number)).toEqual(data.map((_, i) => i));
  const endings = out.filter((event) => event.ending);
  expect(endings).toHaveLength(1);
  expect(out.at(-1)?.ending).toBeDefined();
  for (const { frame: bytes } of out) {
    const [, name, json] =
      /^event: (.*)\ndata: (.*)\n\n$/s.exec(Buffer.from(bytes).toString()) ?? [];
    expect(JSON.parse(json ?? "").type).toBe(name);
  }
  expect(wire).not.toContain("SECRET");
  expect(wire).not.toContain("up-model");
  for (const event of data.filter((event) => event.response)) {
    expect(event.response).toMatchObject({
      object: "response",
      model: "chat-1",
      instructions: "Be kind.",
      store: false,
    });
    expect(event.response.id).toBe(data[0].response.id);
  }
  for (const event of data.filter((event) => "item_id" in event)) {
    expect(event.item_id).toMatch(/./);
  }
  const deltas = data.filter((event) => event.type === "response.output_text.delta");
  for (const delta of deltas) expect(delta.logprobs).toEqual([]);
  expect(data[0].type).toBe("response.created");
}

/** The types of events, without their prefix. */
export const typesOf = (data: { type: string }[]) =>
  data.map(({ type }) => type.replace("response.", ""));
