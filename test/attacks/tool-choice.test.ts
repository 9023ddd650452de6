import { describe, expect, test } from "vitest";
import { ask, chat, message, prepare, refusalOf, says } from "../contract/usage.prepare.ts";
import { snapshotWith } from "../contract/usage.world.ts";

const own = snapshotWith({ tools: ["function", "custom"] });
const every = snapshotWith({ tools: ["*"] });
const search = { type: "web_search" };
const tools = [{ type: "function", name: "f" }];
const chatTools = [{ type: "function", function: { name: "f" } }];

/** A hosted tool, and the path at which a model with only functions refuses it. */
const hosted: [body: object, operation: "responses" | "compact" | "chat", param: string][] = [
  ...(["responses", "compact"] as const).flatMap((operation) =>
    (
      [
        [{ tool_choice: search }, "tool_choice.type"],
        [{ tools, tool_choice: { type: "mcp", server_label: "x" } }, "tool_choice.type"],
        [
          { tools, tool_choice: { type: "allowed_tools", tools: [...tools, search] } },
          "tool_choice.tools[1].type",
        ],
        [{ tools: [{ ...tools[0], tools: [search] }] }, "tools[0].tools[0].type"],
        [{ tools: [{ type: "custom", name: "c", tools: [search] }] }, "tools[0].tools[0].type"],
      ] as const
    ).map(([more, param]) => [ask(more), operation, param] as (typeof hosted)[number]),
  ),
  [chat({ tool_choice: search }), "chat", "tool_choice.type"],
  [
    chat({
      tools: chatTools,
      tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [search] } },
    }),
    "chat",
    "tool_choice.allowed_tools.tools[0].type",
  ],
  [
    chat({ tools: chatTools, tool_choice: { type: "allowed_tools", tools: [search] } }),
    "chat",
    "tool_choice.tools[0].type",
  ],
  [chat({ tools: [{ ...chatTools[0], tools: [search] }] }), "chat", "tools[0].tools[0].type"],
  [
    chat({ tools: [{ type: "function", function: { name: "f", tools: [search] } }] }),
    "chat",
    "tools[0].function.tools[0].type",
  ],
];

test.each(hosted)(
  "a hosted tool is refused wherever it stands: %j on %s",
  async (body, operation, param) => {
    expect(await refusalOf(body, { operation, snapshot: own })).toBe(
      `unsupported_parameter ${param}`,
    );
  },
);

test.each(hosted)("and paid for where the model takes it: %j on %s", async (body, operation) => {
  const { bounds } = await prepare(body, { operation, snapshot: every });
  expect(bounds.input).toBe(10_000);
});

test.each([
  message([{ type: "input_text", text: "x", tools: [search] }]),
  ask({
    input: [
      {
        type: "function_call_output",
        call_id: "c",
        output: [{ type: "input_text", text: "x", tools: [search] }],
      },
    ],
  }),
])("in a part, which has no tools, it does not go up: %j", async (body) => {
  const prepared = await prepare(body, { operation: "responses", snapshot: every });
  expect(JSON.stringify(prepared.body)).not.toContain("web_search");
  expect(prepared.bounds.input).toBeLessThan(2_000);
});

describe("what SDKs send passes", () => {
  const breakpoint = { prompt_cache_breakpoint: { mode: "explicit" } };
  const flat = [
    { type: "function", name: "f", parameters: { properties: { tools: { type: "array" } } } },
  ];
  test.each<[object, "responses" | "chat"]>([
    [ask({ tools: flat, tool_choice: { type: "function", name: "f" } }), "responses"],
    [
      ask({ tools: flat, tool_choice: { type: "allowed_tools", mode: "auto", tools: flat } }),
      "responses",
    ],
    [message([{ type: "input_text", text: "x", ...breakpoint }]), "responses"],
    [
      message([{ type: "output_text", text: "x", annotations: [], logprobs: [] }], "assistant"),
      "responses",
    ],
    [chat({ tools: chatTools, tool_choice: chatTools[0] }), "chat"],
    [chat({ tools: chatTools, tool_choice: "required" }), "chat"],
    [
      chat({
        tools: chatTools,
        tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto", tools: chatTools } },
      }),
      "chat",
    ],
    [says({ role: "user", content: [{ type: "text", text: "x", ...breakpoint }] }), "chat"],
    [
      chat({
        response_format: {
          type: "json_object",
          schema: { properties: { tools: { type: "array" }, tool_choice: { type: "string" } } },
        },
      }),
      "chat",
    ],
  ])("%j on %s", async (body, operation) => {
    const { bounds } = await prepare(body, { operation, snapshot: own });
    expect(bounds.input).toBeLessThan(2_000);
  });
});
