import { expect, test } from "vitest";
import { prepare, refusalOf } from "../../../test/contract/usage.prepare.ts";

const operation = "messages";
const user = (content: unknown) => ({ role: "user", content });
const hi = user("hi");
const asked = (more: object) => ({
  ...{ model: "chat-1", max_tokens: 2_000, messages: [hi] },
  ...more,
});
/** Tools beside which a choice means something. */
const tool = { name: "a", input_schema: { type: "object" } };
const tools = (more: object) => asked({ tools: [{ ...tool, ...more }] });
const block = (more: object, role = "user") =>
  asked({
    messages: [hi, { role: "assistant", content: "A" }, hi].with(role === "user" ? 2 : 1, {
      role,
      content: [{ type: "text", text: "A" }, more],
    }),
  });
const ofUser = "messages[2].content[1]";
const ofModel = "messages[1].content[1]";
const source = { type: "text", media_type: "text/plain", data: "D" };
const document = { type: "document", source };
const result = { type: "tool_result", tool_use_id: "t" };
const found = { type: "search_result", source: "s", title: "T", content: [] };
const thinking = { type: "thinking", thinking: "Hm.", signature: "c2ln" };
const call = { type: "tool_use", id: "t", name: "a", input: {} };

// Each field of Messages that has an effect, a value of another type, and the path that is refused.
const wrongTypes: [field: string, body: object, param: string][] = [
  ["model", asked({ model: 1 }), "model"],
  ["max_tokens", asked({ max_tokens: "1" }), "max_tokens"],
  ["messages", asked({ messages: {} }), "messages"],
  ["a message", asked({ messages: ["hi"] }), "messages[0]"],
  ["role", asked({ messages: [{ role: 1, content: "hi" }] }), "messages[0].role"],
  ["content", asked({ messages: [user({})] }), "messages[0].content"],
  ["a block", asked({ messages: [user(["hi"])] }), "messages[0].content[0]"],
  ["system", asked({ system: 1 }), "system"],
  ["a block of it", asked({ system: ["A"] }), "system[0]"],
  ["its text", asked({ system: [{ type: "text", text: 1 }] }), "system[0].text"],
  [
    "its cache",
    asked({ system: [{ type: "text", text: "A", cache_control: "1h" }] }),
    "system[0].cache_control",
  ],
  ["stream", asked({ stream: "true" }), "stream"],
  ["temperature", asked({ temperature: "1" }), "temperature"],
  ["top_p", asked({ top_p: [] }), "top_p"],
  ["top_k", asked({ top_k: true }), "top_k"],
  ["stop_sequences", asked({ stop_sequences: "END" }), "stop_sequences"],
  ["one of them", asked({ stop_sequences: ["a", null] }), "stop_sequences[1]"],
  ["cache_control", asked({ cache_control: [] }), "cache_control"],
  ["its type", asked({ cache_control: { type: 1 } }), "cache_control.type"],
  ["its ttl", asked({ cache_control: { type: "ephemeral", ttl: 5 } }), "cache_control.ttl"],
  ["context_management", asked({ context_management: [] }), "context_management"],
  ["edits", asked({ context_management: { edits: {} } }), "context_management.edits"],
  ["an edit", asked({ context_management: { edits: ["x"] } }), "context_management.edits[0]"],
  [
    "its type",
    asked({ context_management: { edits: [{ type: 1 }] } }),
    "context_management.edits[0].type",
  ],
  ["metadata", asked({ metadata: "u" }), "metadata"],
  ["user_id", asked({ metadata: { user_id: 1 } }), "metadata.user_id"],
  ["thinking", asked({ thinking: "adaptive" }), "thinking"],
  ["its type", asked({ thinking: { type: 1 } }), "thinking.type"],
  [
    "its budget",
    asked({ thinking: { type: "enabled", budget_tokens: "1024" } }),
    "thinking.budget_tokens",
  ],
  ["its display", asked({ thinking: { type: "adaptive", display: true } }), "thinking.display"],
  [
    "its binding",
    asked({ thinking: { type: "adaptive", block_binding: "drop" } }),
    "thinking.block_binding",
  ],
  [
    "that's mode",
    asked({ thinking: { type: "adaptive", block_binding: { prefix_mismatch_behavior: 1 } } }),
    "thinking.block_binding.prefix_mismatch_behavior",
  ],
  ["output_config", asked({ output_config: "low" }), "output_config"],
  ["effort", asked({ output_config: { effort: 1 } }), "output_config.effort"],
  ["format", asked({ output_config: { format: "json_schema" } }), "output_config.format"],
  ["its type", asked({ output_config: { format: { type: 1 } } }), "output_config.format.type"],
  [
    "its schema",
    asked({ output_config: { format: { type: "json_schema", schema: "{}" } } }),
    "output_config.format.schema",
  ],
  ["tool_choice", asked({ tool_choice: "auto" }), "tool_choice"],
  ["its type", asked({ tool_choice: { type: 1 } }), "tool_choice.type"],
  [
    "its name",
    asked({ tools: [tool], tool_choice: { type: "tool", name: 1 } }),
    "tool_choice.name",
  ],
  [
    "disable_parallel_tool_use",
    asked({ tools: [tool], tool_choice: { type: "auto", disable_parallel_tool_use: "true" } }),
    "tool_choice.disable_parallel_tool_use",
  ],
  ["tools", asked({ tools: {} }), "tools"],
  ["a tool", asked({ tools: ["a"] }), "tools[0]"],
  ["its type", tools({ type: 1 }), "tools[0].type"],
  ["its name", tools({ name: 1 }), "tools[0].name"],
  ["its schema", tools({ input_schema: "{}" }), "tools[0].input_schema"],
  ["description", tools({ description: ["A"] }), "tools[0].description"],
  ["strict", tools({ strict: "true" }), "tools[0].strict"],
  ["defer_loading", tools({ defer_loading: 1 }), "tools[0].defer_loading"],
  [
    "eager_input_streaming",
    tools({ eager_input_streaming: "no" }),
    "tools[0].eager_input_streaming",
  ],
  ["input_examples", tools({ input_examples: {} }), "tools[0].input_examples"],
  ["an example", tools({ input_examples: ["a"] }), "tools[0].input_examples[0]"],
  ["allowed_callers", tools({ allowed_callers: "direct" }), "tools[0].allowed_callers"],
  ["a caller", tools({ allowed_callers: ["direct", 1] }), "tools[0].allowed_callers[1]"],
  ["its cache", tools({ cache_control: true }), "tools[0].cache_control"],
  ["a text's text", block({ type: "text", text: {} }), `${ofUser}.text`],
  ["its citations", block({ type: "text", text: "A", citations: {} }), `${ofUser}.citations`],
  ["its cache", block({ type: "text", text: "A", cache_control: "5m" }), `${ofUser}.cache_control`],
  ["an image's source", block({ type: "image", source: "data:" }), `${ofUser}.source`],
  ["its type", block({ type: "image", source: { type: 1 } }), `${ofUser}.source.type`],
  [
    "its address",
    block({ type: "image", source: { type: "url", url: {} } }),
    `${ofUser}.source.url`,
  ],
  [
    "its data",
    block({ type: "image", source: { type: "base64", media_type: "image/png", data: 1 } }),
    `${ofUser}.source.data`,
  ],
  ["a document's source", block({ ...document, source: "D" }), `${ofUser}.source`],
  ["its data", block({ ...document, source: { ...source, data: 1 } }), `${ofUser}.source.data`],
  [
    "its blocks",
    block({ ...document, source: { type: "content", content: {} } }),
    `${ofUser}.source.content`,
  ],
  ["its title", block({ ...document, title: 1 }), `${ofUser}.title`],
  ["its context", block({ ...document, context: [] }), `${ofUser}.context`],
  ["its citations", block({ ...document, citations: true }), `${ofUser}.citations`],
  [
    "whether it has some",
    block({ ...document, citations: { enabled: 1 } }),
    `${ofUser}.citations.enabled`,
  ],
  ["a find's source", block({ ...found, source: 1 }), `${ofUser}.source`],
  ["its title", block({ ...found, title: 1 }), `${ofUser}.title`],
  ["its content", block({ ...found, content: "A" }), `${ofUser}.content`],
  ["its citations", block({ ...found, citations: [] }), `${ofUser}.citations`],
  ["a result's call", block({ ...result, tool_use_id: 1 }), `${ofUser}.tool_use_id`],
  ["its content", block({ ...result, content: {} }), `${ofUser}.content`],
  ["is_error", block({ ...result, is_error: "false" }), `${ofUser}.is_error`],
  ["a call's id", block({ ...call, id: 1 }, "assistant"), `${ofModel}.id`],
  ["its name", block({ ...call, name: {} }, "assistant"), `${ofModel}.name`],
  ["its input", block({ ...call, input: [] }, "assistant"), `${ofModel}.input`],
  ["a thought", block({ ...thinking, thinking: 1 }, "assistant"), `${ofModel}.thinking`],
  [
    "its signature",
    block({ ...thinking, signature: { toString: 1 } }, "assistant"),
    `${ofModel}.signature`,
  ],
  ["sealed data", block({ type: "redacted_thinking", data: 1 }, "assistant"), `${ofModel}.data`],
];

test.for(wrongTypes)("%s of a wrong type is refused at its path", async ([, body, param]) => {
  expect(await refusalOf(body, { operation })).toBe(`invalid_type ${param}`);
});

test.for([
  ["a cache's type", { cache_control: { type: "lasting" } }, "cache_control.type"],
  ["its time", { cache_control: { type: "ephemeral", ttl: "2h" } }, "cache_control.ttl"],
  ["a display", { thinking: { type: "adaptive", display: "raw" } }, "thinking.display"],
] as const)("%s that is not known is refused", async ([, more, param]) => {
  expect(await refusalOf(asked(more), { operation })).toBe(`invalid_value ${param}`);
});

test("null is the same as an absent field", async () => {
  const fields = [
    "cache_control",
    "context_management",
    "metadata",
    "output_config",
    "stop_sequences",
  ];
  const more = [...fields, "stream", "system", "temperature", "thinking", "tool_choice", "tools"];
  const none = Object.fromEntries(more.map((name) => [name, null]));
  await prepare(asked(none), { operation });
  const text = { type: "text", text: "A", cache_control: null, citations: null };
  const optional = ["allowed_callers", "cache_control", "description", "strict", "type"];
  const bare = Object.fromEntries(optional.map((name) => [name, null]));
  await prepare({ ...tools(bare), messages: [user([text])] }, { operation });
});

test.each([0, 1, 2])(
  "a message without content at %i is refused in Anthropic's words",
  async (at) => {
    for (const content of ["", []]) {
      const turns: object[] = [hi, { role: "assistant", content: "A" }, hi];
      const messages = turns.with(at, { ...turns[at], content });
      await expect(prepare(asked({ messages }), { operation })).rejects.toThrow(
        `messages.${at}: all messages must have non-empty content`,
      );
      const refusal = await refusalOf(asked({ messages }), { operation });
      expect(refusal).toBe(`invalid_value messages[${at}].content`);
    }
  },
);

test("a system prompt without blocks is none", async () => {
  const { body } = await prepare(asked({ system: [] }), { operation });
  expect(body.system).toEqual([{ type: "text", text: "Be kind." }]);
});

test("a turn of nothing but thinking that is left out is left out too", async () => {
  const turn = { role: "assistant", content: [thinking] };
  const { body } = await prepare(asked({ messages: [hi, turn, hi] }), { operation });
  expect(body.messages).toEqual([hi, hi]);
});
