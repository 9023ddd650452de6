import { describe, expect, test } from "vitest";
import { ask, message, prepare, refusalOf, tool } from "../../../test/contract/usage.prepare.ts";
import { testParsing } from "../../../test/support/parsing.ts";
import { parseRequest } from "./parse.ts";

describe("what /responses refuses", () => {
  const cases: [string, object, string][] = [
    ["no model", { input: "hi" }, "missing_required_parameter model"],
    ["model null", ask({ model: null }), "missing_required_parameter model"],
    ["model a number", ask({ model: 1 }), "invalid_type model"],
    ["unknown model", ask({ model: "nope" }), "model_not_found model"],
    ["inactive model", ask({ model: "asleep" }), "model_not_found model"],
    ["model of another kind", ask({ model: "image-1" }), "model_not_found model"],
    ["absurd model", ask({ model: "x".repeat(5_000) }), "model_not_found model"],
    ["legacy upstream", ask({ model: "legacy-1" }), "model_not_responses_capable model"],
    ["no input", { model: "chat-1" }, "missing_required_parameter input"],
    ["input null", ask({ input: null }), "missing_required_parameter input"],
    ["input empty", ask({ input: "" }), "missing_required_parameter input"],
    ["input empty array", ask({ input: [] }), "missing_required_parameter input"],
    ["input a number", ask({ input: 7 }), "invalid_type input"],
    ["input an object", ask({ input: {} }), "invalid_type input"],
    ["item no object", ask({ input: ["hi"] }), "invalid_type input[0]"],
    ["item type no string", ask({ input: [{ type: 1 }] }), "invalid_type input[0].type"],
    ["no role", ask({ input: [{ content: "x" }] }), "missing_required_parameter input[0].role"],
    ["role tool", message("x", "tool"), "invalid_value input[0].role"],
    ["role critic", message("x", "critic"), "invalid_value input[0].role"],
    ["no content", message(null), "missing_required_parameter input[0].content"],
    ["content a number", message(7), "invalid_type input[0].content"],
    ["part no object", message(["x"]), "invalid_type input[0].content[0]"],
    ["part without type", message([{}]), "missing_required_parameter input[0].content[0].type"],
    [
      "part without text",
      message([{ type: "input_text" }]),
      "missing_required_parameter input[0].content[0].text",
    ],
    [
      "sound",
      message([{ type: "input_text", text: "x" }, { type: "input_audio" }]),
      "unsupported_content_type input[0].content[1].type",
    ],
    [
      "a part of the chat format",
      message([{ type: "text", text: "x" }]),
      "unsupported_content_type input[0].content[0].type",
    ],
    [
      "a file's data",
      message([{ type: "input_file", file_data: "x" }]),
      "unsupported_content_type input[0].content[0].type",
    ],
    [
      "an upstream file",
      message([{ type: "input_file", file_id: "file-1" }]),
      "unsupported_parameter input[0].content[0].file_id",
    ],
    [
      "output without call",
      ask({ input: [{ type: "function_call_output", output: "x" }] }),
      "missing_required_parameter input[0].call_id",
    ],
    [
      "output missing",
      ask({ input: [{ type: "function_call_output", call_id: "c" }] }),
      "missing_required_parameter input[0].output",
    ],
    [
      "call without name",
      ask({ input: [{ type: "function_call", call_id: "c", arguments: "{}" }] }),
      "missing_required_parameter input[0].name",
    ],
    [
      "item reference",
      ask({ input: [{ type: "item_reference", id: "x" }] }),
      "unsupported_parameter input[0].type",
    ],
    ["short item reference", ask({ input: [{ id: "x" }] }), "unsupported_parameter input[0].id"],
    ["instructions no text", ask({ instructions: ["x"] }), "invalid_type instructions"],
    ["max 0", ask({ max_output_tokens: 0 }), "invalid_value max_output_tokens"],
    ["max -1", ask({ max_output_tokens: -1 }), "invalid_value max_output_tokens"],
    ["max 1.5", ask({ max_output_tokens: 1.5 }), "invalid_type max_output_tokens"],
    ["max text", ask({ max_output_tokens: "5" }), "invalid_type max_output_tokens"],
    ["stream text", ask({ stream: "true" }), "invalid_type stream"],
    ["stream options", ask({ stream_options: 1 }), "invalid_type stream_options"],
    ["reasoning text", ask({ reasoning: "high" }), "invalid_type reasoning"],
    ["effort number", ask({ reasoning: { effort: 1 } }), "invalid_type reasoning.effort"],
    [
      "effort unknown",
      ask({ reasoning: { effort: "extreme" } }),
      "unsupported_parameter reasoning.effort",
    ],
    [
      "effort of a model without",
      ask({ model: "plain", reasoning: { effort: "low" } }),
      "unsupported_parameter reasoning.effort",
    ],
    [
      "previous response",
      ask({ previous_response_id: "r" }),
      "unsupported_parameter previous_response_id",
    ],
    ["conversation", ask({ conversation: "c" }), "unsupported_parameter conversation"],
    ["prompt", ask({ prompt: { id: "p" } }), "unsupported_parameter prompt"],
    ["background", ask({ background: true }), "unsupported_parameter background"],
    ["tools no array", ask({ tools: {} }), "invalid_type tools"],
    ["tool no object", ask({ tools: ["x"] }), "invalid_type tools[0]"],
    ["tool without type", tool({}), "missing_required_parameter tools[0].type"],
    ["tool not taken", tool({ type: "mcp" }), "unsupported_parameter tools[0].type"],
    [
      "no tools at all",
      { ...tool({ type: "function", name: "f" }), model: "plain" },
      "unsupported_parameter tools[0].type",
    ],
    [
      "function without name",
      tool({ type: "function" }),
      "missing_required_parameter tools[0].name",
    ],
    [
      "upstream store",
      tool({ type: "web_search", vector_store_ids: ["v"] }),
      "unsupported_parameter tools[0].vector_store_ids",
    ],
    [
      "upstream files, deep",
      tool({ type: "web_search", container: { type: "auto", file_ids: ["f"] } }),
      "unsupported_parameter tools[0].container.file_ids",
    ],
    [
      "a container by id",
      tool({ type: "web_search", container: "cntr_1" }),
      "unsupported_parameter tools[0].container",
    ],
    ["tool choice", ask({ tool_choice: 1 }), "invalid_type tool_choice"],
    ["context", ask({ input: "word ".repeat(12_000) }), "context_length_exceeded input"],
    [
      "context with instructions",
      ask({ instructions: "word ".repeat(12_000) }),
      "context_length_exceeded input",
    ],
  ];
  test.each(cases)("%s", async (_name, body, expected) => {
    expect(await refusalOf(body)).toBe(expected);
    if ((body as { model?: string }).model !== "legacy-1") {
      expect(await refusalOf(body, { operation: "compact" })).toBe(expected);
    }
  });

  test("a model that the key may not use", async () => {
    expect(await refusalOf(ask({}), { allowedModels: ["plain"] })).toBe("permission_denied model");
    await prepare(ask({}), { allowedModels: ["plain", "chat-1"] });
  });
});

describe("JSON", () => {
  const parse = async (text: string) =>
    await parseRequest("responses", Buffer.from(text), testParsing());
  test.each([
    ["", "empty"],
    ["{", "cut"],
    ["[]", "array"],
    ["null", "null"],
    ['{"a":1e999}', "beyond a double"],
    [`{"a":${"[".repeat(200)}${"]".repeat(200)}}`, "too deep"],
  ])("refuses %s", async (text) => {
    await expect(parse(text)).rejects.toThrow(/JSON/);
  });
  test("the last of equal names counts, and is what goes up", async () => {
    const parsed = await parse('{"model":"nope","model":"chat-1","input":"hi"}');
    expect(parsed.body.model).toBe("chat-1");
  });
});
