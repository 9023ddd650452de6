import { describe, expect, test } from "vitest";
import { chat, prepare, refusalOf, says } from "../../../test/contract/usage.prepare.ts";
import { snapshotWith } from "../../../test/contract/usage.world.ts";

describe("what /chat/completions refuses", () => {
  const at = "messages[1]";
  const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } };
  const cases: [string, object, string][] = [
    ["no messages", { model: "chat-1" }, "missing_required_parameter messages"],
    ["empty", chat({ messages: [] }), "missing_required_parameter messages"],
    ["no array", chat({ messages: "hi" }), "invalid_type messages"],
    ["no object", chat({ messages: ["hi"] }), "invalid_type messages[0]"],
    ["no role", says({ content: "x" }), `missing_required_parameter ${at}.role`],
    ["role", says({ role: "critic", content: "x" }), `invalid_value ${at}.role`],
    ["no content", says({ role: "user" }), `missing_required_parameter ${at}.content`],
    [
      "content null",
      says({ role: "user", content: null }),
      `missing_required_parameter ${at}.content`,
    ],
    ["content number", says({ role: "user", content: 1 }), `invalid_type ${at}.content`],
    [
      "no content parts",
      says({ role: "user", content: [] }),
      `missing_required_parameter ${at}.content`,
    ],
    [
      "an image",
      says({ role: "user", content: [{ type: "text", text: "a" }, { type: "image_url" }] }),
      `unsupported_content_type ${at}.content[1].type`,
    ],
    [
      "a part without text",
      says({ role: "user", content: [{ type: "text" }] }),
      `missing_required_parameter ${at}.content[0].text`,
    ],
    ["instructions", chat({ instructions: 1 }), "invalid_type instructions"],
    ["stop", chat({ stop: 1 }), "invalid_type stop"],
    ["a stop", chat({ stop: ["a", 1] }), "invalid_type stop[1]"],
    ["long stop", chat({ stop: "x".repeat(257) }), "unsupported_parameter stop"],
    ["bias", chat({ logit_bias: { 5: 1 } }), "unsupported_parameter logit_bias"],
    ["functions", chat({ functions: [{ name: "f" }] }), "unsupported_parameter functions"],
    [
      "a grammar",
      chat({ response_format: { type: "grammar" } }),
      "unsupported_parameter response_format.type",
    ],
    [
      "a file's id in a message",
      says({ role: "user", content: "x", file_ids: ["f"] }),
      `unsupported_parameter ${at}.file_ids`,
    ],
    [
      "a tool in a message",
      says({ role: "system", content: "x", tools: [{ type: "mcp" }] }),
      `unsupported_parameter ${at}.tools[0].type`,
    ],
    [
      "system null",
      says({ role: "system", content: null }),
      `missing_required_parameter ${at}.content`,
    ],
    [
      "tool null",
      says({ role: "tool", tool_call_id: "c", content: null }),
      `missing_required_parameter ${at}.content`,
    ],
    [
      "tool without call",
      says({ role: "tool", content: "x" }),
      `missing_required_parameter ${at}.tool_call_id`,
    ],
    [
      "call without id",
      says({ role: "assistant", tool_calls: [{ ...call, id: null }] }),
      `missing_required_parameter ${at}.tool_calls[0].id`,
    ],
    [
      "call without name",
      says({ role: "assistant", tool_calls: [{ ...call, function: { arguments: "" } }] }),
      `missing_required_parameter ${at}.tool_calls[0].function.name`,
    ],
    [
      "sound in a turn",
      says({ role: "assistant", content: "", audio: { id: "a" } }),
      `unsupported_parameter ${at}.audio`,
    ],
    ["n 2", chat({ n: 2 }), "unsupported_parameter n"],
    ["n 0", chat({ n: 0 }), "unsupported_parameter n"],
    ["n text", chat({ n: "1" }), "unsupported_parameter n"],
    ["effort", chat({ reasoning_effort: "extreme" }), "unsupported_parameter reasoning_effort"],
    [
      "effort in Responses' form",
      chat({ reasoning: { effort: "extreme" } }),
      "unsupported_parameter reasoning.effort",
    ],
    ["max_tokens", chat({ max_tokens: 0 }), "invalid_value max_tokens"],
    [
      "maximum in Responses' form",
      chat({ max_tokens: 5, max_output_tokens: 6 }),
      "invalid_value max_output_tokens",
    ],
    [
      "max_completion_tokens",
      chat({ max_completion_tokens: "1" }),
      "invalid_type max_completion_tokens",
    ],
    ["two maxima", chat({ max_tokens: 5, max_completion_tokens: 6 }), "invalid_value max_tokens"],
    ["tool type", chat({ tools: [{ type: "mcp" }] }), "unsupported_parameter tools[0].type"],
    [
      "tool function",
      chat({ tools: [{ type: "function" }] }),
      "missing_required_parameter tools[0].function",
    ],
    [
      "tool name",
      chat({ tools: [{ type: "function", function: {} }] }),
      "missing_required_parameter tools[0].function.name",
    ],
    ["sound", chat({ modalities: ["text", "audio"] }), "unsupported_parameter modalities"],
    ["voice", chat({ audio: { voice: "x" } }), "unsupported_parameter audio"],
    ["format", chat({ response_format: "json" }), "invalid_type response_format"],
    [
      "search without",
      { ...chat({ web_search_options: {} }), model: "plain" },
      "unsupported_parameter web_search_options",
    ],
    [
      "previous response",
      chat({ previous_response_id: "r" }),
      "unsupported_parameter previous_response_id",
    ],
    [
      "usage flag",
      chat({ stream_options: { include_usage: 1 } }),
      "invalid_type stream_options.include_usage",
    ],
    [
      "context",
      says({ role: "user", content: "word ".repeat(12_000) }),
      "context_length_exceeded messages",
    ],
  ];
  test.each(cases)("%s", async (_name, body, expected) => {
    expect(await refusalOf(body, { operation: "chat" })).toBe(expected);
  });

  test("what it takes", async () => {
    const turns = [
      { role: "system", content: "s" },
      { role: "developer", content: "d" },
      { role: "user", content: "" },
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "c", content: "r" },
      { role: "assistant", content: "" },
    ];
    const body = chat({ messages: turns, n: 1, max_tokens: 5, seed: 7, reasoning_effort: "FAST" });
    const { body: sent, bounds } = await prepare(body, { operation: "chat" });
    expect(sent).toMatchObject({ seed: 7, max_tokens: 5, reasoning_effort: "low", store: false });
    expect(sent.messages).toEqual([{ role: "system", content: "Be kind." }, ...turns]);
    expect(bounds.output).toBe(5);
    await prepare({ ...body, model: "legacy-1" }, { operation: "chat" });
  });

  test("an assistant's turn in which it said nothing is empty", async () => {
    const empty = [
      { role: "assistant", content: null },
      { role: "assistant" },
      { role: "assistant", content: [] },
      { role: "assistant", content: null, tool_calls: [] },
    ];
    for (const turn of empty) {
      const { body: sent } = await prepare(says(turn), { operation: "chat" });
      expect(sent.messages).toContainEqual({ ...turn, content: "" });
    }
  });

  test("text parts are joined, and instructions follow the developer prompt", async () => {
    const parts = [
      { type: "text", text: "Hel" },
      { type: "text", text: "lo" },
    ];
    const { body } = await prepare(
      chat({ messages: [{ role: "user", content: parts }], instructions: "Mine." }),
      { operation: "chat" },
    );
    expect(body.messages).toEqual([
      { role: "system", content: "Be kind.\n\nMine." },
      { role: "user", content: "Hello" },
    ]);
    expect(body).not.toHaveProperty("instructions");
  });

  test("what says no more than its absence, and what is chat's own where chat is spoken", async () => {
    const defaults = { logit_bias: {}, functions: [], function_call: "auto", prediction: null };
    await prepare(chat(defaults), { operation: "chat" });
    const own = { logit_bias: { 5: 1 }, functions: [{ name: "f" }] };
    const { body } = await prepare({ ...chat(own), model: "legacy-1" }, { operation: "chat" });
    expect(body).toMatchObject(own);
    const snapshot = snapshotWith({ passParameters: ["logit_bias"] });
    await prepare(chat({ logit_bias: { 5: 1 } }), { operation: "chat", snapshot });
  });
});
