import { afterAll, describe, expect, test } from "vitest";
import { type Asked, refusalOf } from "./caller.ts";
import { isOwnWorld, ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(async () => {
  // The requests of this file must reach neither an upstream nor the balance.
  if (isOwnWorld) {
    expect(world.upstream.requests).toHaveLength(0);
    expect(await caller.balance()).toEqual({
      available: 10_000_000,
      reserved: 0,
      spendable: 10_000_000,
      monthSpend: 0,
    });
  }
  await world[Symbol.asyncDispose]();
});
const caller = await world.caller();
const model = isOwnWorld ? "scripted" : "chat-1";

const user = { role: "user", content: "Hi" };
const image = { type: "input_image", image_url: "https://example.com/a.png" };
type Row = [fields: Record<string, unknown>, code: string, param: string];

const expectRefused = (asked: Asked, code: string, param: string) => {
  expect(refusalOf(asked)).toBe(`400 invalid_request_error ${code} ${param}`);
  expect(asked.json.error.message).toMatch(/./);
  expect(Object.keys(asked.json)).toEqual(["error"]);
};

describe("POST /responses and /responses/compact", () => {
  const withPart = (part: unknown) => ({ input: [{ role: "user", content: [part] }] });
  test.for<Row>([
    [{ model: undefined }, "missing_required_parameter", "model"],
    [{ model: null }, "missing_required_parameter", "model"],
    [{ model: "" }, "missing_required_parameter", "model"],
    [{ model: 7 }, "invalid_type", "model"],
    [{ model: "no-such-model" }, "model_not_found", "model"],
    [{ model: "x".repeat(10_000) }, "model_not_found", "model"],
    [{ model: "image-1" }, "model_not_found", "model"],
    [{ model: "svc-video-1-5" }, "model_not_found", "model"],
    [{ model: "__proto__" }, "model_not_found", "model"],
    [{ input: undefined }, "missing_required_parameter", "input"],
    [{ input: null }, "missing_required_parameter", "input"],
    [{ input: "" }, "missing_required_parameter", "input"],
    [{ input: [] }, "missing_required_parameter", "input"],
    [{ input: 7 }, "invalid_type", "input"],
    [{ input: { role: "user", content: "Hi" } }, "invalid_type", "input"],
    [{ input: [user, "Hi"] }, "invalid_type", "input[1]"],
    [{ input: [null] }, "invalid_type", "input[0]"],
    [{ input: [{ type: 7 }] }, "invalid_type", "input[0].type"],
    [{ input: [{ content: "Hi" }] }, "missing_required_parameter", "input[0].role"],
    [{ input: [{ role: "king", content: "Hi" }] }, "invalid_value", "input[0].role"],
    [{ input: [{ role: 7, content: "Hi" }] }, "invalid_type", "input[0].role"],
    [{ input: [{ role: "user" }] }, "missing_required_parameter", "input[0].content"],
    [{ input: [{ role: "user", content: 7 }] }, "invalid_type", "input[0].content"],
    [withPart("Hi"), "invalid_type", "input[0].content[0]"],
    [withPart({}), "missing_required_parameter", "input[0].content[0].type"],
    [withPart({ type: 7 }), "invalid_type", "input[0].content[0].type"],
    [withPart({ type: "input_text" }), "missing_required_parameter", "input[0].content[0].text"],
    [withPart({ type: "input_text", text: 7 }), "invalid_type", "input[0].content[0].text"],
    [withPart({ type: "input_audio" }), "unsupported_content_type", "input[0].content[0].type"],
    [withPart({ type: "novel" }), "unsupported_content_type", "input[0].content[0].type"],
    [
      withPart({ type: "input_image" }),
      "missing_required_parameter",
      "input[0].content[0].image_url",
    ],
    [
      withPart({ type: "input_image", image_url: 7 }),
      "invalid_type",
      "input[0].content[0].image_url",
    ],
    [withPart({ ...image, detail: "enormous" }), "invalid_value", "input[0].content[0].detail"],
    [withPart({ ...image, detail: 1 }), "invalid_type", "input[0].content[0].detail"],
    [
      { input: [{ type: "function_call_output", output: "x" }] },
      "missing_required_parameter",
      "input[0].call_id",
    ],
    [
      { input: [{ type: "function_call_output", call_id: "c" }] },
      "missing_required_parameter",
      "input[0].output",
    ],
    [
      { input: [{ type: "function_call", call_id: "c", arguments: "{}" }] },
      "missing_required_parameter",
      "input[0].name",
    ],
    [{ instructions: 7 }, "invalid_type", "instructions"],
    [{ instructions: ["Hi"] }, "invalid_type", "instructions"],
    [{ max_output_tokens: 0 }, "invalid_value", "max_output_tokens"],
    [{ max_output_tokens: -1 }, "invalid_value", "max_output_tokens"],
    [{ max_output_tokens: 1.5 }, "invalid_type", "max_output_tokens"],
    [{ max_output_tokens: "9" }, "invalid_type", "max_output_tokens"],
    [{ reasoning: "low" }, "invalid_type", "reasoning"],
    [{ reasoning: { effort: 7 } }, "invalid_type", "reasoning.effort"],
    [{ reasoning: { effort: "extreme" } }, "unsupported_parameter", "reasoning.effort"],
    [{ tools: {} }, "invalid_type", "tools"],
    [{ tools: ["web_search"] }, "invalid_type", "tools[0]"],
    [{ tools: [{}] }, "missing_required_parameter", "tools[0].type"],
    [{ tools: [{ type: "function" }] }, "missing_required_parameter", "tools[0].name"],
    [{ tool_choice: 7 }, "invalid_type", "tool_choice"],
    [{ stream: "yes" }, "invalid_type", "stream"],
    [{ background: "yes" }, "invalid_type", "background"],
    [{ text: "json" }, "invalid_type", "text"],
  ])("%j: %s", async ([fields, code, param]) => {
    const body = { model, input: "Hi", ...fields };
    for (const path of ["/responses", "/responses/compact"]) {
      expectRefused(await caller.post(path, body), code, param);
    }
    const streamed = await caller.post("/responses", { ...body, stream: fields.stream ?? true });
    expectRefused(streamed, code, param);
  });
});

describe("POST /chat/completions", () => {
  const assistant = (fields: object) => ({ messages: [user, { role: "assistant", ...fields }] });
  test.for<Row>([
    [{ model: undefined }, "missing_required_parameter", "model"],
    [{ model: "no-such-model" }, "model_not_found", "model"],
    [{ model: "speech-1" }, "model_not_found", "model"],
    [{ messages: undefined }, "missing_required_parameter", "messages"],
    [{ messages: [] }, "missing_required_parameter", "messages"],
    [{ messages: "Hi" }, "invalid_type", "messages"],
    [{ messages: ["Hi"] }, "invalid_type", "messages[0]"],
    [{ messages: [{ content: "Hi" }] }, "missing_required_parameter", "messages[0].role"],
    [{ messages: [{ role: "king", content: "Hi" }] }, "invalid_value", "messages[0].role"],
    [{ messages: [user, { role: "user" }] }, "missing_required_parameter", "messages[1].content"],
    [
      { messages: [{ role: "user", content: null }] },
      "missing_required_parameter",
      "messages[0].content",
    ],
    [{ messages: [{ role: "user", content: 7 }] }, "invalid_type", "messages[0].content"],
    [
      { messages: [{ role: "user", content: [{ type: "image_url", image_url: {} }] }] },
      "unsupported_content_type",
      "messages[0].content[0].type",
    ],
    [
      { messages: [{ role: "tool", content: "x" }] },
      "missing_required_parameter",
      "messages[0].tool_call_id",
    ],
    [
      assistant({ tool_calls: [{ type: "function", function: { name: "f", arguments: "" } }] }),
      "missing_required_parameter",
      "messages[1].tool_calls[0].id",
    ],
    [
      assistant({ tool_calls: [{ id: "c", type: "function", function: { name: "f" } }] }),
      "missing_required_parameter",
      "messages[1].tool_calls[0].function.arguments",
    ],
    [{ reasoning_effort: "extreme" }, "unsupported_parameter", "reasoning_effort"],
    [{ reasoning_effort: 1 }, "invalid_type", "reasoning_effort"],
    [{ max_tokens: 0 }, "invalid_value", "max_tokens"],
    [{ max_completion_tokens: "1" }, "invalid_type", "max_completion_tokens"],
    [{ max_tokens: 5, max_completion_tokens: 6 }, "invalid_value", "max_tokens"],
    [{ tools: [{ type: "function" }] }, "missing_required_parameter", "tools[0].function"],
    [
      { tools: [{ type: "function", function: {} }] },
      "missing_required_parameter",
      "tools[0].function.name",
    ],
    [{ response_format: "json" }, "invalid_type", "response_format"],
    [{ stream: 1 }, "invalid_type", "stream"],
    [{ stream_options: "usage" }, "invalid_type", "stream_options"],
    [{ stream_options: { include_usage: "yes" } }, "invalid_type", "stream_options.include_usage"],
  ])("%j: %s", async ([fields, code, param]) => {
    const body = { model, messages: [user], ...fields };
    expectRefused(await caller.post("/chat/completions", body), code, param);
    const streamed = { ...body, stream: fields.stream ?? true };
    expectRefused(await caller.post("/chat/completions", streamed), code, param);
  });
});

describe("a body that is none", () => {
  test.for<[name: string, body: string | Buffer]>([
    ["nothing", ""],
    ["no JSON", "{model: 1}"],
    ["cut off", '{"model": "chat-1", "input": "Hi"'],
    ["with something behind it", '{"model": "chat-1", "input": "Hi"} x'],
    ["an array", "[]"],
    ["a string", '"Hi"'],
    ["null", "null"],
    ["not UTF-8", Buffer.from('{"model": "chat-1", "input": "\xff"}', "latin1")],
    ["nested without end", `{"model": "chat-1", "input": ${"[".repeat(500)}${"]".repeat(500)}}`],
  ])("%s: invalid_json", async ([, body]) => {
    for (const path of ["/responses", "/responses/compact", "/chat/completions"]) {
      expectRefused(await caller.post(path, body), "invalid_json", "null");
    }
  });
});

test.each(["/responses", "/responses/compact", "/chat/completions", "/images/generations"])(
  "%s: a body that would fill the memory once parsed is refused before it is",
  async (path) => {
    const padding = `"user": "${"x".repeat(100_000)}"`;
    const deep = `{${padding}, "input": ${"[".repeat(1_000)}${"]".repeat(1_000)}}`;
    expectRefused(await caller.post(path, deep), "invalid_json", "null");
    const many = await caller.post(path, `{"input": [${"{},".repeat(600_000)}{}]}`);
    expect(refusalOf(many)).toBe("413 invalid_request_error payload_too_large null");
    expect(many.json.error.message).toBe("The body holds too many values.");
  },
);

describe("a model", () => {
  ownWorldOnly();

  test("that is not active does not exist", async () => {
    const asked = await caller.post("/responses", { model: "inactive", input: "Hi" });
    expectRefused(asked, "model_not_found", "model");
  });

  test("without images or efforts takes none", async () => {
    const part = { role: "user", content: [image] };
    const asked = await caller.post("/responses", { model: "plain", input: [part] });
    expectRefused(asked, "unsupported_content_type", "input[0].content[0].type");
    const body = { model: "plain", input: "Hi", reasoning: { effort: "low" } };
    expectRefused(
      await caller.post("/responses", body),
      "unsupported_parameter",
      "reasoning.effort",
    );
  });
});
