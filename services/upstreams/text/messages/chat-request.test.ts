import { expect, test } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import { chatOfMessages } from "./chat-request.ts";

const user = (content: string | JsonObject[]) => ({ role: "user", content });
const of = (more: JsonObject) => chatOfMessages({ messages: [], ...more });
const messagesOf = (...messages: JsonObject[]) => of({ messages }).messages;

test("the system prompt comes first, and texts of one message are one text", () => {
  const system = [
    { type: "text", text: "x-anthropic-billing-header: a" },
    { type: "text", text: "A" },
    { type: "text", text: "B" },
  ];
  const said = [
    { type: "text", text: "one" },
    { type: "text", text: "two" },
  ];
  expect(of({ system, messages: [user(said)] }).messages).toEqual([
    { role: "system", content: "A\n\nB" },
    { role: "user", content: "one\n\ntwo" },
  ]);
});

test("later instructions join the message before them, because templates take them nowhere else", () => {
  const later = { role: "system", content: [{ type: "text", text: "Be brief." }] };
  expect(messagesOf(user("Hi"), later)).toEqual([{ role: "user", content: "Hi\n\nBe brief." }]);
});

test("a turn has its text, its calls, and thinking that has no signature", () => {
  const turn = {
    role: "assistant",
    content: [
      { type: "thinking", thinking: "Hm.", signature: "" },
      { type: "thinking", thinking: "A Claude's.", signature: "EqQB" },
      { type: "text", text: "I look." },
      { type: "tool_use", id: "call_1", name: "get", input: { city: "Rome" } },
    ],
  };
  const call = { name: "get", arguments: '{"city":"Rome"}' };
  expect(messagesOf(user("Hi"), turn)).toEqual([
    { role: "user", content: "Hi" },
    {
      ...{ role: "assistant", content: "I look.", reasoning_content: "Hm." },
      tool_calls: [{ id: "call_1", type: "function", function: call }],
    },
  ]);
});

test("results are messages of their own, and what is no text in them follows", () => {
  const image = { type: "image", source: { image_url: "data:image/png;base64,AA" } };
  const content = [
    { type: "tool_result", tool_use_id: "a", content: [{ type: "text", text: "21" }, image] },
    { type: "tool_result", tool_use_id: "b", content: "22" },
    { type: "text", text: "And?" },
    {
      ...{ type: "document", title: "T" },
      source: { file_data: "data:application/pdf;base64,AA", filename: "a.pdf" },
    },
  ];
  expect(messagesOf(user(content))).toEqual([
    { role: "tool", tool_call_id: "a", content: "21" },
    { role: "tool", tool_call_id: "b", content: "22" },
    {
      role: "user",
      content: [
        { type: "image_url", image_url: { url: "data:image/png;base64,AA" } },
        { type: "text", text: "And?" },
        {
          type: "file",
          file: { filename: "a.pdf", file_data: "data:application/pdf;base64,AA" },
        },
      ],
    },
  ]);
});

test("tools, choices and options", () => {
  const sent = of({
    tools: [{ name: "a", description: "A", input_schema: { type: "object" }, strict: true }],
    tool_choice: { type: "tool", name: "a", disable_parallel_tool_use: true },
    ...{ temperature: 0.5, top_k: 5, store: false, reasoning: { effort: "low", summary: "auto" } },
    output_config: { format: { type: "json_schema", schema: { type: "object" } } },
  });
  expect(sent).toEqual({
    ...{ messages: [], temperature: 0.5, store: false, reasoning_effort: "low" },
    tools: [
      {
        type: "function",
        function: {
          ...{ name: "a", description: "A", strict: true },
          parameters: { type: "object" },
        },
      },
    ],
    tool_choice: { type: "function", function: { name: "a" } },
    parallel_tool_calls: false,
    response_format: {
      type: "json_schema",
      json_schema: { name: "answer", schema: { type: "object" }, strict: true },
    },
  });
});
