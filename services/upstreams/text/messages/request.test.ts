import { expect, test } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import { carrierOf } from "./carrier.ts";
import { responsesOfMessages } from "./request.ts";

const user = (content: string | JsonObject[]) => ({ role: "user", content });
const of = (more: JsonObject) => responsesOfMessages({ model: "m", messages: [], ...more });
const inputOf = (...messages: JsonObject[]) => of({ messages }).input;
const said = (text: string) => ({ type: "input_text", text });

test("texts, images and documents of a user are parts of one message", () => {
  const content = [
    { type: "text", text: "Look." },
    { type: "image", source: { image_url: "data:image/png;base64,AA" } },
    {
      type: "document",
      source: { file_data: "data:application/pdf;base64,AA", filename: "a.pdf" },
    },
    {
      ...{ type: "document", title: "T", context: "C" },
      source: { type: "text", media_type: "text/plain", data: "D" },
    },
    {
      ...{ type: "document", title: "T" },
      source: { type: "content", content: [{ type: "text", text: "in it" }] },
    },
    {
      ...{ type: "search_result", title: "T", source: "https://a.example" },
      content: [{ type: "text", text: "found" }],
    },
  ];
  expect(inputOf(user(content))).toEqual([
    {
      ...{ type: "message", role: "user" },
      content: [
        said("Look."),
        { type: "input_image", image_url: "data:image/png;base64,AA" },
        {
          ...{ type: "input_file", filename: "a.pdf" },
          file_data: "data:application/pdf;base64,AA",
        },
        said("T\n\nC\n\nD"),
        said("T"),
        said("in it"),
        said("T\nhttps://a.example\nfound"),
      ],
    },
  ]);
});

test("calls, their results and later instructions are items of their own, in their order", () => {
  const signature = `${carrierOf({ id: "rs_1", encrypted_content: "sealed" })}`;
  const input = inputOf(
    user("Weather?"),
    { role: "system", content: [{ type: "text", text: "Be brief." }] },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "Hm.", signature },
        { type: "thinking", thinking: "A Claude's.", signature: "EqQB" },
        { type: "redacted_thinking", data: "EqQB" },
        { type: "text", text: "I look." },
        { type: "tool_use", id: "call_1", name: "get", input: { city: "Rome" } },
      ],
    },
    user([
      { type: "tool_result", tool_use_id: "call_1", content: [{ type: "text", text: "21" }] },
      { type: "tool_result", tool_use_id: "call_2", is_error: true },
      {
        ...{ type: "tool_result", tool_use_id: "call_3" },
        content: [{ type: "image", source: { image_url: "https://a.example/a.png" } }],
      },
      { type: "text", text: "And?" },
    ]),
  );
  expect(input).toEqual([
    { type: "message", role: "user", content: [said("Weather?")] },
    { type: "message", role: "developer", content: [said("Be brief.")] },
    {
      ...{ type: "reasoning", id: "rs_1", encrypted_content: "sealed" },
      summary: [{ type: "summary_text", text: "Hm." }],
    },
    {
      ...{ type: "message", role: "assistant" },
      content: [{ type: "output_text", text: "I look.", annotations: [] }],
    },
    { type: "function_call", call_id: "call_1", name: "get", arguments: '{"city":"Rome"}' },
    { type: "function_call_output", call_id: "call_1", output: "21" },
    { type: "function_call_output", call_id: "call_2", output: "" },
    {
      ...{ type: "function_call_output", call_id: "call_3" },
      output: [{ type: "input_image", image_url: "https://a.example/a.png" }],
    },
    { type: "message", role: "user", content: [said("And?")] },
  ]);
});

test("the system prompt becomes the instructions, without an attribution in first place", () => {
  const blocks = (...texts: string[]) => texts.map((text) => ({ type: "text", text }));
  const billing = "x-anthropic-billing-header: cc_version=2.1";
  expect(of({ system: blocks(billing, "A", "B") }).instructions).toBe("A\n\nB");
  expect(of({ system: blocks("A", billing) }).instructions).toBe(`A\n\n${billing}`);
  expect(of({ system: [] }).instructions).toBeUndefined();
});

test("tools are not strict where that is not said, and choices keep their meaning", () => {
  const tools = [
    { name: "a", description: "A", input_schema: { type: "object" }, cache_control: {} },
    { type: "custom", name: "b", input_schema: { type: "object" }, strict: true },
  ];
  expect(of({ tools }).tools).toEqual([
    {
      ...{ type: "function", name: "a", description: "A", strict: false },
      parameters: { type: "object" },
    },
    { type: "function", name: "b", parameters: { type: "object" }, strict: true },
  ]);
  expect(of({ tools: [] })).not.toHaveProperty("tools");
  for (const [choice, meant] of [
    [{ type: "auto" }, "auto"],
    [{ type: "any" }, "required"],
    [{ type: "none" }, "none"],
    [
      { type: "tool", name: "a" },
      { type: "function", name: "a" },
    ],
  ] as const) {
    expect(of({ tool_choice: choice }).tool_choice).toEqual(meant);
  }
  const one = of({ tool_choice: { type: "auto", disable_parallel_tool_use: true } });
  expect(one).toMatchObject({ tool_choice: "auto", parallel_tool_calls: false });
});

test("options pass under their names, and what Responses lack is left out", () => {
  const sent = of({
    ...{ temperature: 0.5, top_p: null, top_k: 5, stop_sequences: ["END"], store: false },
    ...{ prompt_cache_key: "k", reasoning: { effort: "low" }, thinking: { type: "adaptive" } },
    ...{ context_management: { edits: [] }, cache_control: { type: "ephemeral" } },
    output_config: { effort: "low", format: { type: "json_schema", schema: { type: "object" } } },
  });
  expect(sent).toEqual({
    ...{ model: "m", input: [], temperature: 0.5, store: false, prompt_cache_key: "k" },
    ...{ reasoning: { effort: "low" }, include: ["reasoning.encrypted_content"] },
    text: {
      format: { type: "json_schema", name: "answer", schema: { type: "object" }, strict: true },
    },
  });
  expect(of({ reasoning: {}, thinking: { type: "adaptive" } })).toEqual({
    ...{ model: "m", input: [], include: ["reasoning.encrypted_content"] },
  });
});
