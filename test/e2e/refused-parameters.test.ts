import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { refusalOf } from "./caller.ts";
import { isOwnWorld, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();
const model = isOwnWorld ? "scripted" : "chat-1";

beforeEach(() => {
  if (isOwnWorld) world.play();
});
// A refused request was neither sent nor held.
afterEach(() => {
  if (isOwnWorld) expect(world.upstream.requests).toHaveLength(0);
});

const user = { role: "user", content: "Hi" };
const messages = [user];

describe("state in the operator's upstream account is no caller's", () => {
  test.for<[fields: Record<string, unknown>, param: string]>([
    [{ previous_response_id: "resp_1" }, "previous_response_id"],
    [{ conversation: "conv_1" }, "conversation"],
    [{ conversation: { id: "conv_1" } }, "conversation"],
    [{ prompt: { id: "pmpt_1" } }, "prompt"],
    [{ background: true }, "background"],
    [{ input: [user, { type: "item_reference", id: "msg_1" }] }, "input[1].type"],
    [{ input: [{ id: "msg_1" }] }, "input[0].id"],
    [
      {
        input: [{ role: "user", content: [{ type: "input_file", file_id: "file-1" }] }],
      },
      "input[0].content[0].file_id",
    ],
    [{ tools: [{ type: "file_search", vector_store_ids: ["vs_1"] }] }, "tools[0].vector_store_ids"],
    [
      {
        tools: [
          { type: "web_search" },
          { type: "code_interpreter", container: { type: "auto", file_ids: ["file-1"] } },
        ],
      },
      "tools[1].container.file_ids",
    ],
    [{ tools: [{ type: "code_interpreter", container: "cntr_1" }] }, "tools[0].container"],
    [
      {
        tools: [
          {
            type: "shell",
            environment: {
              type: "container_auto",
              skills: [{ type: "skill_reference", skill_id: "skill_1" }],
            },
          },
        ],
      },
      "tools[0].environment.skills[0].skill_id",
    ],
    [
      { tools: [{ type: "image_generation", input_image_mask: { file_id: "file-1" } }] },
      "tools[0].input_image_mask.file_id",
    ],
  ])("%j", async ([fields, param]) => {
    for (const path of ["/responses", "/responses/compact"]) {
      const asked = await caller.post(path, { model, input: "Hi", ...fields });
      expect(refusalOf(asked)).toBe(`400 invalid_request_error unsupported_parameter ${param}`);
    }
  });

  test("what says that there is none is no reference", async () => {
    const none = { previous_response_id: null, conversation: null, prompt: null };
    const body = { model: "chat-1", input: "Hi", background: false, store: true, ...none };
    const { status, json } = await caller.post("/responses", body);
    expect(status).toBe(200);
    expect(json).toMatchObject({ background: false, store: false, previous_response_id: null });
  });
});

describe("of chat", () => {
  test.for<[fields: Record<string, unknown>, param: string]>([
    [{ n: 2 }, "n"],
    [{ n: 0 }, "n"],
    [{ n: "1" }, "n"],
    [{ audio: { voice: "alloy" } }, "audio"],
    [{ modalities: ["text", "audio"] }, "modalities"],
    [
      { messages: [user, { role: "assistant", content: "x", audio: { id: "audio_1" } }] },
      "messages[1].audio",
    ],
  ])("%j", async ([fields, param]) => {
    const asked = await caller.post("/chat/completions", { model, messages, ...fields });
    expect(refusalOf(asked)).toBe(`400 invalid_request_error unsupported_parameter ${param}`);
  });

  test("n of 1 is fine", async () => {
    const body = { model: "chat-1", messages, n: 1 };
    expect((await caller.post("/chat/completions", body)).status).toBe(200);
  });
});

describe("tools that the model does not take", () => {
  test.runIf(isOwnWorld)("name the place, and what it takes", async () => {
    const tools = [{ type: "function", name: "f" }, { type: "web_search" }];
    const asked = await caller.post("/responses", { model: "few-tools", input: "Hi", tools });
    expect(refusalOf(asked)).toBe("400 invalid_request_error unsupported_parameter tools[1].type");
    expect(asked.json.error.message).toContain("function");
    const chat = await caller.post("/chat/completions", {
      model: "few-tools",
      messages,
      web_search_options: {},
    });
    expect(refusalOf(chat)).toBe(
      "400 invalid_request_error unsupported_parameter web_search_options",
    );
  });
});
