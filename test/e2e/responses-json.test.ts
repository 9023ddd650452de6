import { afterAll, describe, expect, test } from "vitest";
import { developerPrompt } from "./catalog.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();

/** All fields of the object, by OpenAI's reference and Open Responses. */
const fields = [
  "background",
  "completed_at",
  "created_at",
  "error",
  "frequency_penalty",
  "id",
  "incomplete_details",
  "instructions",
  "max_output_tokens",
  "max_tool_calls",
  "metadata",
  "model",
  "object",
  "output",
  "parallel_tool_calls",
  "presence_penalty",
  "previous_response_id",
  "prompt_cache_key",
  "reasoning",
  "safety_identifier",
  "service_tier",
  "status",
  "store",
  "temperature",
  "text",
  "tool_choice",
  "tools",
  "top_logprobs",
  "top_p",
  "truncation",
  "usage",
];

describe("a response of the builtin model", () => {
  test("has every field of the object", async () => {
    const { status, headers, json } = await caller.post("/responses", {
      model: "chat-1",
      input: "Say hello.",
      instructions: "Be kind.",
      max_output_tokens: 50,
      temperature: 0.5,
      metadata: { mine: "1" },
    });
    expect(status).toBe(200);
    expect(headers.get("content-type")).toMatch(/^application\/json/);
    expect(Object.keys(json)).toEqual(expect.arrayContaining(fields));
    expect(json).toMatchObject({
      object: "response",
      status: "completed",
      model: "chat-1",
      instructions: "Be kind.",
      max_output_tokens: 50,
      temperature: 0.5,
      metadata: { mine: "1" },
      store: false,
      error: null,
      incomplete_details: null,
      previous_response_id: null,
    });
    expect(json.id).toMatch(/./);
    expect(Number.isInteger(json.created_at)).toBe(true);
    const [item] = json.output;
    expect(item).toMatchObject({ type: "message", role: "assistant", status: "completed" });
    expect(item.id).toMatch(/./);
    expect(item.content).toEqual([
      expect.objectContaining({ type: "output_text", annotations: [], logprobs: [] }),
    ]);
    const { usage } = json;
    expect(usage.input_tokens).toBeGreaterThan(0);
    expect(usage.output_tokens).toBeGreaterThan(0);
    expect(usage.total_tokens).toBe(usage.input_tokens + usage.output_tokens);
    expect(usage.input_tokens_details.cached_tokens).toBe(0);
    expect(usage.output_tokens_details.reasoning_tokens).toBe(0);
  });

  test("is the same for the same input, and has real token counts", async () => {
    const ask = () => caller.post("/responses", { model: "chat-1", input: "What is a mesh?" });
    const [one, two] = [await ask(), await ask()];
    expect(one.json.output[0].content).toEqual(two.json.output[0].content);
    expect(one.json.usage).toEqual(two.json.usage);
    const { json } = await caller.post("/responses", { model: "chat-1", input: "say hello" });
    expect(json.output[0].content[0].text).toBe("hello");
    expect(json.usage.output_tokens).toBe(1);
  });

  test("takes text, messages and parts alike", async () => {
    const inputs = [
      "Say hi.",
      [{ role: "user", content: "Say hi." }],
      [{ type: "message", role: "user", content: [{ type: "input_text", text: "Say hi." }] }],
      [
        { role: "developer", content: "Be kind." },
        { role: "user", content: "Who are you?" },
        { role: "assistant", content: "Nobody." },
        { role: "user", content: [{ type: "input_text", text: "Say hi." }] },
      ],
    ];
    for (const input of inputs) {
      const { status, json } = await caller.post("/responses", { model: "chat-1", input });
      expect(status).toBe(200);
      expect(json.output[0].content[0].text).toMatch(/hi/i);
    }
  });

  test("calls the only function there is, and answers by its output", async () => {
    const tools = [
      {
        type: "function",
        name: "get_weather",
        parameters: {
          type: "object",
          properties: { city: { type: "string" } },
          required: ["city"],
        },
      },
    ];
    const question = { role: "user", content: "Weather in Paris?" };
    const first = await caller.post("/responses", { model: "chat-1", input: [question], tools });
    const [call] = first.json.output;
    expect(call).toMatchObject({ type: "function_call", name: "get_weather" });
    expect(JSON.parse(call.arguments)).toHaveProperty("city");
    const output = { type: "function_call_output", call_id: call.call_id, output: "21 degrees" };
    const input = [question, call, output];
    const second = await caller.post("/responses", { model: "chat-1", input, tools });
    expect(second.json.output[0].type).toBe("message");
    expect(second.json.output[0].content[0].text).toContain("21 degrees");
  });

  test("is incomplete where max_output_tokens cuts it", async () => {
    const { json } = await caller.post("/responses", {
      model: "chat-1",
      input: "Tell me a story.",
      max_output_tokens: 3,
    });
    expect(json.status).toBe("incomplete");
    expect(json.incomplete_details).toEqual({ reason: "max_output_tokens" });
    expect(json.usage.output_tokens).toBe(3);
  });

  test("carries a request id of ours, and the one that was sent", async () => {
    const body = { model: "chat-1", input: "Say hi." };
    const given = await caller.post("/responses", body, { headers: { "x-request-id": "mine-1" } });
    expect(given.headers.get("x-client-request-id")).toBe("mine-1");
    const made = await caller.post("/responses", body);
    for (const { headers } of [given, made]) {
      expect(headers.get("x-request-id")).toMatch(/^req_\S{8,}$/);
    }
  });
});

describe("what goes up, and what comes back", () => {
  ownWorldOnly();

  test("the upstream's own name for the model, and its key instead of the caller's", async () => {
    const seen = world.play();
    const { json } = await caller.post("/responses", { model: "scripted", input: "Hi" });
    expect(seen).toHaveLength(1);
    expect(seen[0]).toMatchObject({ method: "POST", path: "/v1/responses" });
    expect(seen[0]?.headers.authorization).toBe("Bearer up-key-5f2c9d");
    expect(JSON.stringify(seen[0]?.headers)).not.toContain(caller.key);
    expect(seen[0]?.body).toEqual({
      model: "up-model",
      input: "Hi",
      instructions: developerPrompt,
      store: false,
      stream: false,
    });
    expect(json.model).toBe("scripted");
    expect(json.output[0].content[0].text).toBe("Hello from upstream.");
    expect(json.usage).toMatchObject({ input_tokens: 10, output_tokens: 5, total_tokens: 15 });
  });

  test("store is false, also where true is asked for, and the tier is the catalog's", async () => {
    const seen = world.play();
    const body = { input: "Hi", store: true, service_tier: "priority" };
    const { json } = await caller.post("/responses", { model: "scripted", ...body });
    expect(seen[0]?.body.store).toBe(false);
    expect(seen[0]?.body).not.toHaveProperty("service_tier");
    expect(json.store).toBe(false);
    await caller.post("/responses", { model: "tiered", ...body });
    expect(seen[1]?.body.service_tier).toBe("flex");
  });

  test("items that no rule knows pass, up and down; properties do not", async () => {
    const item = { type: "novel_item", id: "nov_1", deep: { a: [1, null, "ü"] } };
    const seen = world.play({
      kind: "json",
      body: {
        id: "resp_1",
        object: "response",
        status: "completed",
        output: [item],
        novel_answer: { x: 1 },
        usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
      },
    });
    const sent = { input: [{ ...item }], temperature: 0.1 };
    const body = { model: "scripted", novel_option: { on: true }, ...sent };
    const { json, headers } = await caller.post("/responses", body);
    expect(seen[0]?.body).toMatchObject(sent);
    expect(seen[0]?.body).not.toHaveProperty("novel_option");
    expect(headers.get("x-genmesh-ignored-parameters")).toBe("novel_option");
    expect(json.output).toEqual([item]);
    expect(json).not.toHaveProperty("novel_answer");
    expect(Object.keys(json)).toEqual(expect.arrayContaining(fields));
  });

  test("tools and items of agents are not flattened", async () => {
    const seen = world.play();
    const tools = [
      { type: "function", name: "f", parameters: { type: "object" }, strict: true },
      { type: "web_search", search_context_size: "low" },
      { type: "custom", name: "c", format: { type: "text" } },
      { type: "mcp", server_label: "s", server_url: "https://mcp.example.com" },
    ];
    const input = [
      { role: "user", content: "Go." },
      { type: "function_call", id: "fc_1", call_id: "call_1", name: "f", arguments: '{"a": 1}' },
      { type: "function_call_output", call_id: "call_1", output: '{"done":  true}' },
      { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search" } },
      { type: "custom_tool_call_output", call_id: "c_1", output: "ok" },
    ];
    const body = { model: "scripted", input, tools, tool_choice: { type: "function", name: "f" } };
    const { status } = await caller.post("/responses", body);
    expect(status).toBe(200);
    expect(seen[0]?.body).toMatchObject({ input, tools, tool_choice: body.tool_choice });
  });

  test("max_output_tokens goes up, at most the model's; omitted it stays omitted", async () => {
    const seen = world.play();
    const ask = (fields: object) =>
      caller.post("/responses", { model: "scripted", input: "Hi", ...fields });
    await ask({ max_output_tokens: 7 });
    await ask({ max_output_tokens: 5_000 });
    await ask({});
    expect(seen.map(({ body }) => body.max_output_tokens)).toEqual([7, 1_000, undefined]);
  });

  test("of equal names the last counts, and goes up alone", async () => {
    const seen = world.play();
    const body = '{"model":"inactive","input":"first","input":"last","model":"scripted"}';
    const { status } = await caller.post("/responses", body);
    expect(status).toBe(200);
    expect(seen[0]?.body).toMatchObject({ model: "up-model", input: "last" });
    expect(seen[0]?.raw.toString()).not.toContain("first");
  });

  test("a call comes back as upstream wrote it", async () => {
    world.play({ kind: "ok", call: { name: "f", arguments: '{"city" : "Köln"}' } });
    const { json } = await caller.post("/responses", {
      model: "scripted",
      input: "Hi",
      tools: [{ type: "function", name: "f" }],
    });
    expect(json.output).toMatchObject([
      { type: "function_call", name: "f", call_id: "call_up_1", arguments: '{"city" : "Köln"}' },
    ]);
  });

  test("what upstream leaves out is filled in", async () => {
    world.play({
      kind: "json",
      body: { output: [{ type: "message", content: [{ type: "output_text", text: "x" }] }] },
    });
    const { status, json } = await caller.post("/responses", { model: "scripted", input: "Hi" });
    expect(status).toBe(200);
    expect(Object.keys(json)).toEqual(expect.arrayContaining(fields));
    expect(json.id).toMatch(/./);
    expect(json.output[0].id).toMatch(/./);
    expect(json.output[0].content[0]).toEqual({
      type: "output_text",
      text: "x",
      annotations: [],
      logprobs: [],
    });
    expect(json).toMatchObject({ model: "scripted", status: "completed", object: "response" });
  });

  test("an incomplete answer says why", async () => {
    world.play({ kind: "ok", finish: "content_filter" });
    const { json } = await caller.post("/responses", { model: "scripted", input: "Hi" });
    expect(json).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "content_filter" },
    });
  });
});
