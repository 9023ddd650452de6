import { expect, test } from "vitest";
import { inTurns } from "#kit/base/in-turns.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { usualBetas } from "../../anthropic/capabilities.ts";
import { carrierOf } from "./carrier.ts";
import { nativeBody } from "./native-request.ts";
import { type MessagesRequest, toMessages } from "./request.ts";

// Thinking holds only behind exactly the tools, instructions and turns that it was made behind, and so does a cache. A release that
// writes one byte of them otherwise breaks the conversations that are under way. So these texts change for a strong reason alone.

const thinking = { type: "thinking", thinking: "I must look.", signature: "c2lnbmF0dXJl+/=" };
const options = { betas: usualBetas, passParameters: [], dropsBlocks: true };

const items: JsonObject[] = [
  { role: "developer", content: "Be brief." },
  { role: "user", content: [{ type: "input_text", text: "What is there? ü🦊" }] },
  {
    ...{ type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "…" }] },
    encrypted_content: carrierOf(thinking) ?? "",
  },
  { type: "function_call", call_id: "toolu_1", name: "look", arguments: '{"at":1.0,"z":"<a>"}' },
  { type: "function_call_output", call_id: "toolu_1", output: "A lamp." },
  { role: "assistant", content: [{ type: "output_text", text: "A lamp.", annotations: [] }] },
  { role: "developer", content: "Now shout." },
  { role: "user", content: "And now?" },
];
const asked = (input: JsonObject[]): JsonObject => ({
  ...{ model: "claude", instructions: "PROMPT\n\nHelp.", input },
  tools: [{ type: "function", name: "look", parameters: { type: "object" }, strict: true }],
  reasoning: { effort: "high", summary: "auto" },
});
const translated = (input: JsonObject[]) =>
  (inTurns(toMessages(asked(input), options)) as MessagesRequest).body;

const tools = '[{"name":"look","input_schema":{"type":"object"},"strict":true}]';
const system = '[{"type":"text","text":"PROMPT\\n\\nHelp."},{"type":"text","text":"Be brief."}]';
const turns = [
  '{"role":"user","content":[{"type":"text","text":"What is there? ü🦊"}]}',
  '{"role":"assistant","content":[{"type":"thinking","thinking":"I must look.","signature":"c2lnbmF0dXJl+/="},{"type":"tool_use","id":"toolu_1","name":"look","input":{"at":1.0,"z":"<a>"}}]}',
  '{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"A lamp."}]}',
  '{"role":"assistant","content":[{"type":"text","text":"A lamp."}]}',
  '{"role":"user","content":[{"type":"text","text":"And now?"}]}',
  '{"role":"system","content":[{"type":"text","text":"Now shout."}]}',
];

test("a conversation in Responses has these bytes", () => {
  expect(JSON.stringify(translated(items))).toBe(
    `{"tools":${tools},"system":${system},"messages":[${turns}],` +
      '"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}},' +
      '"output_config":{"effort":"high"}}',
  );
});

test("each turn of it begins with all bytes of the turn before", () => {
  for (const [count, expected] of [
    [2, 1],
    [5, 3],
    [6, 4],
    [8, 6],
  ] as const) {
    const { tools: t, system: s, messages } = translated(items.slice(0, count));
    expect(JSON.stringify([t, s, messages])).toBe(
      `[${tools},${system},[${turns.slice(0, expected)}]]`,
    );
  }
});

test("a conversation in Messages has the bytes that it came with", () => {
  const control = '"cache_control":{"type":"ephemeral"}';
  const text =
    `{"tools":[{"name":"look","input_schema":{"type":"object"},"eager_input_streaming":true,${control}}],` +
    `"system":[{"type":"text","text":"Help.",${control}}],` +
    `"messages":[${turns.slice(0, 4)},{"role":"user","content":[{"text":"And now?","type":"text",${control}}]}]}`;
  const body = JSON.parse(text) as JsonObject;
  // The check puts turns of the model in as they were written.
  const { messages } = body as { messages: JsonObject[] };
  const input = JSON.parse('{"at":1}');
  expect(messages[1]).toMatchObject({ content: [thinking, { input: { ...input, z: "<a>" } }] });
  const { thinking: asks, ...kept } = nativeBody(body, options);
  expect(JSON.stringify(kept)).toBe(text.replace('"at":1.0', '"at":1'));
  expect(asks).toEqual({
    ...{ type: "adaptive", block_binding: { prefix_mismatch_behavior: "drop_block" } },
  });
});
