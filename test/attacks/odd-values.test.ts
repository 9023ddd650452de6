import { afterAll, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import { type Document, startMediaWorld } from "../e2e/media-world.ts";
import { ownWorldOnly } from "../e2e/world.ts";

const { world, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();

/** Values that honest programs send by mistake, and others on purpose. */
const odd = [
  ...[true, -1, 1.5, 2 ** 64, "", "\u0000", "\ud800", "constructor", "__proto__", "1"],
  ...[[], [[]], [null], [{}], {}, JSON.parse('{"__proto__": {"model": 1}}'), { toString: 1 }],
];

/** A valid body of each route, and the paths of the fields that get odd values. */
const routes: [path: string, body: object, fields: string][] = [
  [
    "/responses",
    { model: "scripted", input: [{ role: "user", content: "hi" }] },
    `model input input.0 input.0.type input.0.role input.0.content instructions max_output_tokens reasoning
     reasoning.effort tools tools.0 tools.0.type tool_choice text text.format temperature top_p metadata include
     parallel_tool_calls truncation user previous_response_id store background prompt conversation service_tier stream
     stream_options top_logprobs max_tool_calls`,
  ],
  ["/responses/compact", { model: "scripted", input: "hi" }, "model input instructions stream"],
  [
    "/chat/completions",
    { model: "scripted", messages: [{ role: "user", content: "hi" }] },
    `model messages messages.0 messages.0.role messages.0.content messages.0.tool_calls messages.0.name n stream
     stream_options reasoning_effort max_tokens max_completion_tokens tools tools.0 tool_choice response_format stop
     logit_bias logprobs functions web_search_options modalities audio seed prediction`,
  ],
  [
    "/messages",
    {
      ...{ model: "scripted", max_tokens: 2_000, thinking: { type: "adaptive" } },
      messages: [
        { role: "user", content: [{ type: "text", text: "hi" }] },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "x", signature: "x" },
            { type: "tool_use", id: "a", name: "look", input: {} },
          ],
        },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: "x" }] },
      ],
    },
    `model max_tokens messages messages.0 messages.0.role messages.0.content messages.0.content.0
     messages.0.content.0.type messages.0.content.0.text messages.0.content.0.source messages.0.content.0.cache_control
     messages.1.content messages.1.content.0.thinking messages.1.content.0.signature messages.1.content.1.id
     messages.1.content.1.name messages.1.content.1.input messages.2.content.0.tool_use_id messages.2.content.0.content
     messages.2.content.0.is_error system system.0 system.0.type system.0.text tools tools.0 tools.0.type tools.0.name
     tools.0.description tools.0.input_schema tools.0.strict tools.0.allowed_callers tool_choice tool_choice.type
     tool_choice.disable_parallel_tool_use thinking thinking.type thinking.display thinking.budget_tokens output_config
     output_config.effort output_config.format output_config.format.schema stop_sequences stop_sequences.0 temperature
     top_p top_k metadata metadata.user_id cache_control context_management context_management.edits
     context_management.edits.0 context_management.edits.0.type service_tier speed container mcp_servers stream`,
  ],
  [
    "/images/generations",
    { model: "scripted-image", prompt: "x" },
    "model prompt n size aspectRatio resolution input_reference input_reference.file_id referenceFileIds referenceFileIds.0",
  ],
  [
    "/videos/generations",
    { model: "text-only", prompt: "x" },
    `model modelId prompt seconds durationSeconds size aspectRatio resolution input_reference
     input_reference.image_url referenceFileIds`,
  ],
  [
    "/music/generations",
    { model: "music-1", mode: "instrumental", title: "x" },
    "model mode title description lyrics",
  ],
  [
    "/speech/generations",
    { model: "scripted-speech", input: "hi", voice: "alloy" },
    "model input voice language speed",
  ],
];

/** `body` with `value` at a path. Missing objects on the way are added. */
function changed(body: object, path: string, value: unknown): Document {
  const copy: Document = structuredClone(body);
  const steps = path.split(".");
  const last = steps.pop() ?? "";
  let at = copy;
  for (const [i, step] of steps.entries()) {
    const next = steps[i + 1] ?? last;
    if (typeof at[step] !== "object") at[step] = /^\d/.test(next) ? [] : {};
    at = at[step];
  }
  at[last] = value;
  return copy;
}

async function faultOf(caller: Caller, path: string, body: Document): Promise<string | undefined> {
  const { status, json, text } = await caller.post(path, body);
  if (status < 400) return undefined;
  const { message, type, code, param } = json?.error ?? {};
  const names = path === "/messages" ? "type,error,request_id" : "error";
  const isWhole = Object.keys(json ?? {}).join() === names && message && type && code;
  // A body that is no JSON has no wrong field.
  const isNamed = typeof param === "string" || code === "invalid_json" || status === 402;
  return status < 500 && isWhole && isNamed ? undefined : `${status} ${text}`;
}

test.each(routes)(
  "%s: an odd value is taken, or its field is named",
  async (path, body, fields) => {
    // Without credits no job is begun, because faults are found before.
    const caller = await world.caller({ usdMicros: 1_000_000_000n });
    const cases = fields
      .split(/\s+/)
      .flatMap((field) => odd.map((value) => ({ field, body: changed(body, field, value) })));
    const faults: string[] = [];
    const work = async () => {
      for (let one = cases.pop(); one; one = cases.pop()) {
        const fault = await faultOf(caller, path, one.body);
        if (fault) faults.push(`${JSON.stringify(one.body)}: ${fault}`);
      }
    };
    await Promise.all(Array.from({ length: 4 }, work));
    expect(faults).toEqual([]);
  },
  60_000,
);

const goodBody = (path: string) => routes.find(([one]) => one === path)?.[1] ?? {};

test.each([
  ["/images/generations", "prompt"],
  ["/videos/generations", "prompt"],
  ["/music/generations", "title"],
  ["/speech/generations", "input"],
])("%s: a %s of white space alone is missing", async (path, field) => {
  const caller = await world.caller({ usdMicros: 1_000_000_000n });
  for (const blank of ["", " ", "\n\t\u00a0"]) {
    const { status, json } = await caller.post(path, changed(goodBody(path), field, blank));
    expect(status).toBe(400);
    expect(json?.error).toMatchObject({ code: "missing_required_parameter", param: field });
  }
});

test("lyrics of white space alone are missing where they are sung, and refused in an instrumental", async () => {
  const caller = await world.caller({ usdMicros: 1_000_000_000n });
  const music = goodBody("/music/generations");
  const sung = await caller.post("/music/generations", { ...music, mode: "lyrics", lyrics: " \n" });
  expect(sung.json?.error).toMatchObject({ code: "missing_required_parameter", param: "lyrics" });
  const played = await caller.post("/music/generations", { ...music, lyrics: " " });
  expect(played.json?.error).toMatchObject({ code: "invalid_value", param: "lyrics" });
  // Without them the request is valid. This caller only has no credits.
  expect((await caller.post("/music/generations", { ...music, lyrics: "" })).status).toBe(402);
});
