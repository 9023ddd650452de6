import { describe, expect, test } from "vitest";
import type { JsonObject, JsonValue } from "#kit/base/json.ts";
import {
  bodyOf,
  call,
  faultOf,
  lookThere,
  made,
  result,
  toolResult,
  toolUse,
  user,
} from "./request.fixture.ts";

const look = { type: "function", name: "look", parameters: { type: "object" } };
describe("calls and their results", () => {
  const hi = { role: "user", content: "Hi" };

  test("results are the first blocks of one turn of the user", () => {
    const input = [
      ...[hi, call("a", { arguments: '{"x":1}' }), call("b")],
      ...[result("b", "B"), { role: "user", content: "And?" }],
      result("a", [{ type: "input_text", text: "A" }]),
    ];
    expect(bodyOf({ input, tools: [look] }).messages).toEqual([
      user("Hi"),
      { role: "assistant", content: [toolUse("a", { x: 1 }), toolUse("b")] },
      {
        role: "user",
        content: [
          toolResult("b", "B"),
          toolResult("a", [{ type: "text", text: "A" }]),
          { type: "text", text: "And?" },
        ],
      },
    ]);
  });

  test("an id in another alphabet is the same hash for both", () => {
    const { messages } = bodyOf({ input: [hi, call("a:1/ü"), result("a:1/ü", "A")] });
    const [, { content: [used] = [] } = {}, { content: [answered] = [] } = {}] =
      messages as unknown as { content: JsonObject[] }[];
    expect(used?.id).toMatch(/^call_[\w-]{32}$/);
    expect(answered?.tool_use_id).toBe(used?.id);
  });

  test.each<[string, JsonValue[], string]>([
    ["a call without a result", [hi, call("a")], "invalid input[1]"],
    [
      "one before the next turn",
      [hi, call("a"), hi, call("b"), result("b", "")],
      "invalid input[1]",
    ],
    ["a result without a call", [hi, result("a", "A")], "invalid input[1]"],
    [
      "a result for the second time",
      [hi, call("a"), result("a", ""), result("a", "")],
      "invalid input[3]",
    ],
    ["no JSON", [hi, call("a", { arguments: "x" })], "invalid input[1].arguments"],
    ["no object", [hi, call("a", { arguments: "1.0" })], "invalid input[1].arguments"],
    [
      "deep",
      [hi, call("a", { arguments: `{"a":${"[".repeat(5_000)}` })],
      "invalid input[1].arguments",
    ],
    ["the upstream's", [hi, { type: "web_search_call", id: "ws" }], "unsupported input[1].type"],
    ["a compaction", [hi, { type: "compaction" }], "unsupported input[1].type"],
  ])("%s is refused", (_name, input, fault) => {
    expect(faultOf({ input })).toBe(fault);
  });

  test("numbers of arguments are written as they came", async () => {
    const numbers = '{"a":1.0,"b":1e3,"c":12345678901234567890,"d":-0,"e":["1.0",2]}';
    const input = [hi, call("a", { arguments: numbers }), result("a", "")];
    expect(JSON.stringify(bodyOf({ input }))).toContain(numbers);
    const { jsonInTurns } = await import("#kit/base/in-turns.ts");
    const long = { role: "user", content: "x".repeat(400_000) };
    const large = await jsonInTurns(bodyOf({ input: [...input, long] }));
    expect(Buffer.from(large).toString()).toContain(numbers);
  });

  test("custom tools are tools with a text, and namespaces a part of the name", () => {
    const tools = [
      { type: "custom", name: "patch", description: "Patches.", format: { type: "text" } },
      { type: "namespace", name: "files", description: "", tools: [look] },
    ];
    const input = [
      ...[hi, { type: "custom_tool_call", call_id: "a", name: "patch", input: "*** Begin" }],
      { type: "custom_tool_call_output", call_id: "a", output: "Done." },
      ...[call("b", { namespace: "files" }), result("b", "B")],
    ];
    const schema = {
      type: "object",
      properties: { input: { type: "string" } },
      required: ["input"],
    };
    expect(bodyOf({ input, tools })).toMatchObject({
      tools: [
        { name: "patch", description: "Patches.", input_schema: schema },
        { ...lookThere, name: "files__look" },
      ],
      messages: [
        user("Hi"),
        { content: [{ type: "tool_use", name: "patch", input: { input: "*** Begin" } }] },
        { content: [toolResult("a", "Done.")] },
        { content: [{ type: "tool_use", name: "files__look" }] },
        { content: [toolResult("b", "B")] },
      ],
    });
  });
});

describe("tools", () => {
  test("functions, strict where it is said, and those that items add", () => {
    const added = {
      type: "additional_tools",
      role: "developer",
      tools: [{ ...look, name: "add" }],
    };
    const tools = [
      { ...look, strict: true },
      { type: "function", name: "bare", strict: false },
    ];
    const input = [added, { role: "user", content: "Hi" }];
    expect(bodyOf({ tools, input }).tools).toEqual([
      { ...lookThere, strict: true },
      { name: "bare", input_schema: { type: "object", properties: {} } },
      { ...lookThere, name: "add" },
    ]);
  });

  test.each<[string, JsonValue, JsonValue | undefined]>([
    ["auto", "auto", undefined],
    ["none", "none", { type: "none" }],
    ["required", "required", { type: "any" }],
    ["a function", { type: "function", name: "look" }, { type: "tool", name: "look" }],
  ])("the choice %s", (_name, tool_choice, there) => {
    expect(bodyOf({ tools: [look], tool_choice }).tool_choice).toEqual(there);
  });

  test("one call at a time, and a choice among some", () => {
    const alone = { tools: [look], parallel_tool_calls: false };
    const one = { disable_parallel_tool_use: true };
    expect(bodyOf(alone).tool_choice).toEqual({ type: "auto", ...one });
    expect(bodyOf({ ...alone, tool_choice: "required" }).tool_choice).toEqual({
      ...{ type: "any", ...one },
    });
    expect(bodyOf({ ...alone, tool_choice: "none" }).tool_choice).toEqual({ type: "none" });
    const allowed = { type: "allowed_tools", mode: "required", tools: [{ ...look }] };
    const cut = bodyOf({ tools: [{ ...look, name: "other" }, look], tool_choice: allowed });
    expect(cut).toMatchObject({ tools: [lookThere], tool_choice: { type: "any" } });
    // A choice without tools is refused there.
    expect(bodyOf({ tool_choice: "auto" })).not.toHaveProperty("tool_choice");
  });

  test.each<[string, JsonObject, string]>([
    ["of the host", { tools: [{ type: "web_search" }] }, "unsupported tools[0].type"],
    ["of the computer", { tools: [look, { type: "local_shell" }] }, "unsupported tools[1].type"],
    [
      "with a grammar",
      { tools: [{ type: "custom", name: "c", format: { type: "grammar" } }] },
      "unsupported tools[0].format",
    ],
    [
      "called by programs",
      { tools: [{ ...look, allowed_callers: ["code"] }] },
      "unsupported tools[0].allowed_callers",
    ],
    ["with a long name", { tools: [{ ...look, name: "n".repeat(129) }] }, "invalid tools[0].name"],
    ["with one name", { tools: [look, look] }, "invalid tools[1].name"],
    [
      "that are not there",
      { tools: [look], tool_choice: { type: "function", name: "x" } },
      "unsupported tool_choice",
    ],
    [
      "chosen by the host",
      { tools: [look], tool_choice: { type: "mcp" } },
      "unsupported tool_choice",
    ],
  ])("%s are refused", (_name, asked, fault) => {
    expect(faultOf(asked)).toBe(fault);
  });

  test("a model that cannot be forced is not", () => {
    const options = { refusesForcedTools: true };
    const forced = { tools: [look], tool_choice: "required" };
    expect(faultOf(forced, options)).toBe("unsupported tool_choice");
    expect(bodyOf({ ...forced, tool_choice: "none" }, options).tool_choice).toEqual({
      ...{ type: "none" },
    });
  });

  test("what only a search for tools knows is left out by name", () => {
    const tools = [{ ...look, defer_loading: true, allowed_callers: ["direct"] }];
    expect(made({ tools })).toMatchObject({
      body: { tools: [lookThere] },
      leftOut: ["tools.allowed_callers", "tools.defer_loading"],
    });
  });
});
