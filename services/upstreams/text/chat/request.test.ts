import { expect, test } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import { toResponsesRequest } from "./request.ts";

const user = { role: "user", content: "Hi" };

/** The translation of a request with these fields, without its input. */
function optionsOf(fields: JsonObject): JsonObject {
  const { input: _, ...options } = toResponsesRequest({ messages: [user], ...fields }, []);
  return options;
}

const inputOf = (...messages: JsonObject[]) => toResponsesRequest({ messages }, []).input;
const said = (role: string, content: string) => ({ type: "message", role, content });

test("roles and order stay", () => {
  const roles = ["system", "developer", "user", "assistant", "user"];
  const messages = roles.map((role, i) => ({ role, content: `m${i}`, name: "n" }));
  expect(inputOf(...messages)).toEqual(roles.map((role, i) => said(role, `m${i}`)));
});

test("calls and their results become items", () => {
  const call = (id: string) => ({
    id,
    type: "function",
    function: { name: "f", arguments: '{"a":1}' },
  });
  const custom = { id: "c3", type: "custom", custom: { name: "g", input: "raw" } };
  expect(
    inputOf(
      user,
      { role: "assistant", content: null, tool_calls: [call("c1"), call("c2"), custom] },
      { role: "tool", tool_call_id: "c1", content: "one" },
      { role: "tool", tool_call_id: "c3", content: "three" },
      { role: "assistant", content: "so", tool_calls: [call("c4")] },
      { role: "assistant", content: "", tool_calls: [call("c5")] },
      { role: "assistant", content: null, refusal: "no" },
    ),
  ).toEqual([
    said("user", "Hi"),
    { type: "function_call", call_id: "c1", name: "f", arguments: '{"a":1}' },
    { type: "function_call", call_id: "c2", name: "f", arguments: '{"a":1}' },
    { type: "custom_tool_call", call_id: "c3", name: "g", input: "raw" },
    { type: "function_call_output", call_id: "c1", output: "one" },
    { type: "custom_tool_call_output", call_id: "c3", output: "three" },
    said("assistant", "so"),
    { type: "function_call", call_id: "c4", name: "f", arguments: '{"a":1}' },
    { type: "function_call", call_id: "c5", name: "f", arguments: '{"a":1}' },
    said("assistant", "no"),
  ]);
});

const schema = { type: "object", properties: {} };
const cases: [string, JsonObject, JsonObject][] = [
  ["its limits", { max_tokens: 7, max_completion_tokens: 9 }, {}],
  ["effort", { reasoning_effort: "low" }, { reasoning: { effort: "low" } }],
  ["verbosity", { verbosity: "low" }, { text: { verbosity: "low" } }],
  ["text", { response_format: { type: "text" } }, { text: { format: { type: "text" } } }],
  [
    "a JSON object",
    { response_format: { type: "json_object" } },
    { text: { format: { type: "json_object" } } },
  ],
  [
    "a JSON schema",
    { response_format: { type: "json_schema", json_schema: { name: "s", strict: true, schema } } },
    { text: { format: { type: "json_schema", name: "s", strict: true, schema } } },
  ],
  [
    "function tools are not strict unless they say so",
    {
      tools: [
        { type: "function", function: { name: "a", description: "d", parameters: schema } },
        { type: "function", function: { name: "b", strict: true } },
      ],
    },
    {
      tools: [
        { type: "function", name: "a", description: "d", parameters: schema, strict: false },
        { type: "function", name: "b", parameters: null, strict: true },
      ],
    },
  ],
  [
    "custom tools and tools that are flat already",
    {
      tools: [
        {
          type: "custom",
          custom: {
            name: "c",
            format: { type: "grammar", grammar: { syntax: "lark", definition: "x" } },
          },
        },
        { type: "web_search" },
      ],
    },
    {
      tools: [
        { type: "custom", name: "c", format: { type: "grammar", syntax: "lark", definition: "x" } },
        { type: "web_search" },
      ],
    },
  ],
  ["a choice by word", { tool_choice: "required" }, { tool_choice: "required" }],
  [
    "a choice by name",
    { tool_choice: { type: "function", function: { name: "f" } } },
    { tool_choice: { type: "function", name: "f" } },
  ],
  [
    "allowed tools",
    {
      tool_choice: {
        type: "allowed_tools",
        allowed_tools: { mode: "required", tools: [{ type: "function", function: { name: "f" } }] },
      },
    },
    {
      tool_choice: {
        type: "allowed_tools",
        mode: "required",
        tools: [{ type: "function", name: "f" }],
      },
    },
  ],
  [
    "logprobs",
    { logprobs: true, top_logprobs: 3 },
    { include: ["message.output_text.logprobs"], top_logprobs: 3 },
  ],
  ["no logprobs", { logprobs: false }, {}],
  ["usage is made here", { stream_options: { include_usage: true } }, {}],
  [
    "padding is upstream's",
    { stream_options: { include_usage: true, include_obfuscation: false } },
    { stream_options: { include_obfuscation: false } },
  ],
  [
    "values that say nothing",
    {
      n: 1,
      seed: 3,
      stop: null,
      logit_bias: {},
      presence_penalty: 0,
      frequency_penalty: 0,
      modalities: ["text"],
      temperature: null,
    },
    {},
  ],
  [
    "what means the same, and what we do not know, is upstream's to judge",
    {
      temperature: 0.1,
      top_p: 0.2,
      user: "u",
      metadata: { a: "b" },
      parallel_tool_calls: false,
      store: false,
      stop: ["x"],
      presence_penalty: 1,
      novel: { deep: [1] },
    },
    {
      temperature: 0.1,
      top_p: 0.2,
      user: "u",
      metadata: { a: "b" },
      parallel_tool_calls: false,
      store: false,
      presence_penalty: 1,
      novel: { deep: [1] },
    },
  ],
  [
    "what a named tool, format or choice holds beyond its fields is not the tool's",
    {
      tools: [
        { type: "function", function: { name: "f", type: "file_search", vector_store_ids: ["v"] } },
      ],
      tool_choice: { type: "function", function: { name: "f", type: "file_search" } },
      response_format: { type: "json_schema", json_schema: { name: "s", type: "other" } },
    },
    {
      tools: [{ type: "function", name: "f", parameters: null, strict: false }],
      tool_choice: { type: "function", name: "f" },
      text: { format: { type: "json_schema", name: "s" } },
    },
  ],
  [
    "web search",
    {
      web_search_options: {
        search_context_size: "low",
        user_location: { type: "approximate", approximate: { city: "Paris", file_id: "f" } },
      },
    },
    {
      tools: [
        {
          type: "web_search",
          search_context_size: "low",
          user_location: { type: "approximate", city: "Paris" },
        },
      ],
    },
  ],
];

test.each(cases)("%s", (_name, chat, responses) => {
  expect(optionsOf(chat)).toEqual(responses);
});

test("the request that came is not changed", () => {
  const chat = { messages: [user], tools: [{ type: "function", function: { name: "a" } }], n: 1 };
  const before = structuredClone(chat);
  toResponsesRequest(chat, []);
  expect(chat).toEqual(before);
});
