import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { refusalOf } from "../e2e/caller.ts";
import { chat } from "../e2e/catalog.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";

ownWorldOnly();
const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    models: [...usual.models, chat("searching", { tools: ["function", "web_search"] })],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();

const user = { role: "user", content: "Hi" };
const search = { type: "file_search", vector_store_ids: ["vs_operator"] };
const connector = { type: "mcp", server_label: "s", connector_id: "connector_gmail" };
const container = { type: "code_interpreter", container: "cntr_operator" };

/** Items that carry tools, and a tool in each. */
const carriers = (tool: object) => ({
  "input[1].tools[0]": [
    { type: "additional_tools", role: "developer", tools: [tool] },
    { type: "tool_search_output", call_id: "c", tools: [tool] },
    { role: "user", content: "x", tools: [tool] },
  ],
  "input[1].tools[0].tools[0]": [
    {
      type: "additional_tools",
      role: "developer",
      tools: [{ type: "namespace", name: "n", tools: [tool] }],
    },
  ],
});

describe("state of the operator's upstream account within items is neither sent nor held", () => {
  beforeEach(() => void world.play());
  afterEach(() => expect(world.upstream.requests).toHaveLength(0));

  const inItems = [
    [search, "vector_store_ids"],
    [connector, "connector_id"],
    [container, "container"],
  ].flatMap(([tool, name]) =>
    Object.entries(carriers(tool as object)).flatMap(([place, items]) =>
      items.map((item) => [item, `${place}.${name}`] as const),
    ),
  );
  const references = [
    [
      { type: "code_interpreter_call", id: "ci", code: "1", container_id: "cntr_1" },
      "container_id",
    ],
    [
      {
        type: "shell_call",
        call_id: "c",
        action: { commands: [] },
        environment: { type: "container_reference", container_id: "cntr_1" },
      },
      "environment.container_id",
    ],
    [{ type: "image_generation_call", id: "ig_operator" }, "id"],
    [
      {
        role: "assistant",
        content: [
          {
            type: "output_text",
            text: "x",
            annotations: [{ type: "container_file_citation", container_id: "cntr_1" }],
          },
        ],
      },
      "content[0].annotations[0].container_id",
    ],
    [{ type: "file_search_call", id: "f", results: [{ file_id: "file-1" }] }, "results[0].file_id"],
  ].map(([item, param]) => [item, `input[1].${param}`] as const);

  test.for([...inItems, ...references])("%j", async ([item, param]) => {
    for (const path of ["/responses", "/responses/compact"]) {
      const asked = await caller.post(path, { model: "scripted", input: [user, item] });
      expect(refusalOf(asked)).toBe(`400 invalid_request_error unsupported_parameter ${param}`);
    }
  });

  test.for([
    [{ input: [user, { type: "novel_item", payload: { vector_store_ids: ["vs_1"] } }] }],
    [{ input: "Hi", prompt_cache_options: { comparison_response_id: "resp_1" } }],
    [{ input: "Hi", novel: { background: true } }],
  ])("wherever it stands: %j", async ([fields]) => {
    const asked = await caller.post("/responses", { model: "scripted", ...fields });
    expect(refusalOf(asked)).toContain("400 invalid_request_error unsupported_parameter");
  });

  test("a chat tool that turns into another on its way to Responses", async () => {
    const disguised = { type: "function", function: { name: "f", ...search } };
    const named = { name: "f", description: "d", parameters: { type: "object" } };
    const messages = [user];
    const body = { model: "scripted", messages, tools: [disguised] };
    const refused = refusalOf(await caller.post("/chat/completions", body));
    expect(refused).toBe(
      "400 invalid_request_error unsupported_parameter tools[0].function.vector_store_ids",
    );
    expect(world.upstream.requests).toEqual([]);
    const beside = { type: "function", function: named, ...{ file_ids: ["file-1"] } };
    const asked = await caller.post("/chat/completions", { ...body, tools: [beside] });
    expect(refusalOf(asked)).toContain("unsupported_parameter tools[0].file_ids");
  });

  test("on a model with a list of tools: tools in items, and items that no rule knows", async () => {
    const ask = (item: object) =>
      caller.post("/responses", { model: "searching", input: [user, item] });
    const agent = { type: "additional_tools", role: "developer", tools: [{ type: "mcp" }] };
    expect(refusalOf(await ask(agent))).toContain("unsupported_parameter input[1].tools[0].type");
    expect(refusalOf(await ask({ type: "novel_item", id: "n" }))).toContain(
      "unsupported_parameter input[1].type",
    );
    const effort = { type: "configuration_update", reasoning: { effort: "extreme" } };
    expect(refusalOf(await ask(effort))).toContain(
      "unsupported_parameter input[1].reasoning.effort",
    );
  });
});

describe("a hosted tool within an item", () => {
  test.for([
    { type: "additional_tools", role: "developer", tools: [{ type: "web_search" }] },
    { type: "tool_search_output", call_id: "c", tools: [{ type: "web_search" }] },
    { type: "novel_item", id: "n" },
  ])("is paid for like one under tools: %j", async (item) => {
    const payer = await world.caller();
    world.play({ kind: "hang" });
    const leaving = new AbortController();
    const body = { model: "scripted", input: [user, item], max_output_tokens: 10 };
    const asked = payer.post("/responses", body, { signal: leaving.signal }).catch(() => {});
    await world.upstream.request(1);
    // 20,000 tokens of input at 1 micro, 10 of output at 4.
    expect((await payer.balance()).reserved).toBe(20_040);
    leaving.abort();
    await asked;
  });
});

test("a caller's own words may hold such names", async () => {
  const properties = { file_id: { type: "string" }, conversation: { type: "string" } };
  const parameters = { type: "object", properties };
  const item = {
    type: "additional_tools",
    role: "developer",
    tools: [{ type: "namespace", name: "n", tools: [{ type: "function", name: "f", parameters }] }],
  };
  const body = {
    model: "scripted",
    input: [
      user,
      item,
      { type: "function_call", call_id: "c", name: "f", arguments: '{"file_id":"x"}' },
      { type: "function_call_output", call_id: "c", output: '{"container_id":"x"}' },
    ],
    tools: [{ type: "function", name: "g", parameters }],
    metadata: { conversation: "7" },
  };
  const seen = world.play();
  const { status } = await caller.post("/responses", body);
  expect(status).toBe(200);
  expect(seen[0]?.body).toMatchObject({ input: body.input, tools: body.tools });
});
