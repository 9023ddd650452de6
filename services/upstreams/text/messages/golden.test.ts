import { expect, test } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import { carrierOf } from "./carrier.ts";
import { chatOfMessages } from "./chat-request.ts";
import { responsesOfMessages } from "./request.ts";

// Caches are by prefix, and sealed reasoning holds behind the same beginning alone. A release that translates one byte otherwise costs
// the conversations that are under way both. So these texts change for a strong reason alone.

const sealed = { id: "rs_1", encrypted_content: "c2VhbGVkK/8=" };
const history: JsonObject[] = [
  { role: "user", content: "What is there? ü🦊" },
  {
    role: "assistant",
    content: [
      { type: "thinking", thinking: "I must look.", signature: carrierOf(sealed) ?? "" },
      { type: "text", text: "I look." },
      { type: "tool_use", id: "toolu_1", name: "look", input: { z: "<a>", at: 1.5 } },
    ],
  },
  {
    role: "user",
    content: [
      { type: "tool_result", tool_use_id: "toolu_1", content: [{ type: "text", text: "A lamp." }] },
      { type: "text", text: "Go on." },
    ],
  },
  { role: "system", content: "Now shout." },
  { role: "assistant", content: "A LAMP." },
  { role: "user", content: [{ type: "text", text: "And now?" }] },
];
/** The first turns of the conversation, as the check leaves them. */
const asked = (count: number): JsonObject => ({
  model: "chat-1",
  system: [
    { type: "text", text: "x-anthropic-billing-header: cc_version=2.1" },
    { type: "text", text: "PROMPT" },
    { type: "text", text: "Help.", cache_control: { type: "ephemeral" } },
  ],
  messages: history.slice(0, count),
  tools: [{ name: "look", description: "Looks.", input_schema: { type: "object" }, strict: true }],
  ...{ thinking: { type: "adaptive" }, reasoning: { effort: "high" }, store: false },
});

/** A text as a string of JavaScript holds it, without its escapes. */
const raw = String.raw;

const items = [
  '{"type":"message","role":"user","content":[{"type":"input_text","text":"What is there? ü🦊"}]}',
  '{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"I must look."}],"encrypted_content":"c2VhbGVkK/8="}',
  '{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look.","annotations":[]}]}',
  raw`{"type":"function_call","call_id":"toolu_1","name":"look","arguments":"{\"z\":\"<a>\",\"at\":1.5}"}`,
  '{"type":"function_call_output","call_id":"toolu_1","output":"A lamp."}',
  '{"type":"message","role":"user","content":[{"type":"input_text","text":"Go on."}]}',
  '{"type":"message","role":"developer","content":[{"type":"input_text","text":"Now shout."}]}',
  '{"type":"message","role":"assistant","content":[{"type":"output_text","text":"A LAMP.","annotations":[]}]}',
  '{"type":"message","role":"user","content":[{"type":"input_text","text":"And now?"}]}',
];
const before = '"model":"chat-1","store":false,"reasoning":{"effort":"high"},';
const instructions = raw`"instructions":"PROMPT\n\nHelp.",`;
const functions =
  '"tools":[{"type":"function","name":"look","description":"Looks.","parameters":{"type":"object"},"strict":true}],';

test("a conversation has these bytes in Responses, and each turn begins with the turn before", () => {
  for (const [turns, count] of [
    [1, 1],
    [3, 6],
    [6, 9],
  ] as const) {
    expect(JSON.stringify(responsesOfMessages(asked(turns)))).toBe(
      `{"input":[${items.slice(0, count)}],${before}${instructions}${functions}"include":["reasoning.encrypted_content"]}`,
    );
  }
});

const messages = [
  raw`{"role":"system","content":"PROMPT\n\nHelp."}`,
  '{"role":"user","content":"What is there? ü🦊"}',
  raw`{"role":"assistant","content":"I look.","tool_calls":[{"id":"toolu_1","type":"function","function":{"name":"look","arguments":"{\"z\":\"<a>\",\"at\":1.5}"}}]}`,
  '{"role":"tool","tool_call_id":"toolu_1","content":"A lamp."}',
  raw`{"role":"user","content":"Go on.\n\nNow shout."}`,
  '{"role":"assistant","content":"A LAMP."}',
  '{"role":"user","content":"And now?"}',
];
const behind =
  '"store":false,"tools":[{"type":"function","function":{"name":"look","description":"Looks.","parameters":{"type":"object"},"strict":true}}],"reasoning_effort":"high"';

test("a conversation has these bytes in Chat Completions, and each turn begins with the turn before", () => {
  for (const [turns, count] of [
    [1, 2],
    [4, 5],
    [6, 7],
  ] as const) {
    expect(JSON.stringify(chatOfMessages(asked(turns)))).toBe(
      `{"messages":[${messages.slice(0, count)}],${behind}}`,
    );
  }
});
