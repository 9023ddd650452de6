import { afterAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { startWorld } from "../e2e/world.ts";
import { openSocket } from "../support/caller-socket.ts";

// The tests of Open Responses over HTTP, in our words. Its tests of sockets are in test/e2e/responses-socket.test.ts.

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();

const count = z.int().nonnegative();
const part = z.looseObject({ type: z.literal("output_text"), text: z.string() });
const status = z.enum(["in_progress", "completed", "incomplete"]);
const item = z.discriminatedUnion("type", [
  z.looseObject({
    ...{ type: z.literal("message"), id: z.string(), status },
    ...{ role: z.literal("assistant"), content: z.array(part) },
  }),
  z.looseObject({
    ...{ type: z.literal("function_call"), id: z.string(), call_id: z.string(), status },
    ...{ name: z.string(), arguments: z.string() },
  }),
  z.looseObject({ type: z.literal("reasoning"), id: z.string(), summary: z.array(z.unknown()) }),
]);
/** A response with every field that Open Responses demands, also where it is null. */
const response = z.looseObject({
  ...{ id: z.string(), object: z.literal("response"), created_at: count },
  ...{ completed_at: count.nullable(), status: z.string(), model: z.string() },
  incomplete_details: z.object({ reason: z.string() }).nullable(),
  ...{ previous_response_id: z.string().nullable(), instructions: z.string().nullable() },
  ...{ output: z.array(item), error: z.object({}).nullable() },
  tools: z.array(
    z.looseObject({
      ...{ type: z.literal("function"), name: z.string(), description: z.string().nullable() },
      ...{ parameters: z.looseObject({}).nullable(), strict: z.boolean().nullable() },
    }),
  ),
  ...{ tool_choice: z.string(), truncation: z.enum(["auto", "disabled"]) },
  ...{ parallel_tool_calls: z.boolean(), top_p: z.number(), temperature: z.number() },
  text: z.looseObject({ format: z.looseObject({ type: z.string() }) }),
  ...{ presence_penalty: z.number(), frequency_penalty: z.number(), top_logprobs: count },
  reasoning: z.looseObject({ effort: z.string().nullable(), summary: z.string().nullable() }),
  usage: z
    .looseObject({
      ...{ input_tokens: count, output_tokens: count, total_tokens: count },
      input_tokens_details: z.looseObject({ cached_tokens: count }),
      output_tokens_details: z.looseObject({ reasoning_tokens: count }),
    })
    .nullable(),
  ...{ max_output_tokens: count.nullable(), max_tool_calls: count.nullable() },
  ...{ store: z.boolean(), background: z.boolean(), service_tier: z.string() },
  ...{ metadata: z.object({}), safety_identifier: z.string().nullable() },
  prompt_cache_key: z.string().nullable(),
});

const said = (role: string, content: unknown) => ({ type: "message", role, content });
const question = said("user", "What is the weather in Paris?");
const tools = [
  {
    ...{ type: "function", name: "get_weather", description: "The weather of a place" },
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
];
const heart =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const requests: Readonly<Record<string, { body: object; type: string }>> = {
  "a basic response": { body: { input: [said("user", "Say hello.")] }, type: "message" },
  "a system message": {
    body: { input: [said("system", "You are a pirate."), said("user", "Say hello.")] },
    type: "message",
  },
  "a call of a tool": { body: { input: [question], tools }, type: "function_call" },
  "an image": {
    body: {
      input: [
        said("user", [
          { type: "input_text", text: "What is this?" },
          { type: "input_image", image_url: heart },
        ]),
      ],
    },
    type: "message",
  },
  "several turns": {
    body: {
      input: [
        said("user", "My name is Alice."),
        said("assistant", "Hello, Alice."),
        said("user", "What is my name?"),
      ],
    },
    type: "message",
  },
};

describe.for(Object.entries(requests))("%s", ([, { body, type }]) => {
  const asked = { model: "chat-1", ...body };

  test("in one piece", async () => {
    const answer = await caller.post("/responses", asked);
    expect(answer.status).toBe(200);
    const whole = response.parse(answer.json);
    expect(whole.status).toBe("completed");
    expect(whole.output.map((one) => one.type)).toContain(type);
  });

  test("as a stream, each of whose responses is whole", async () => {
    const events = (await caller.stream("/responses", asked)).slice(0, -1);
    const whole = events.flatMap(({ json }) =>
      json.response ? [response.parse(json.response)] : [],
    );
    expect(whole.map((one) => one.status)).toEqual(["in_progress", "in_progress", "completed"]);
    const items = events.filter(({ name }) => name === "response.output_item.done");
    expect(items.map(({ json }) => item.parse(json.item).type)).toContain(type);
    const deltas = type === "message" ? "output_text" : "function_call_arguments";
    const names = events.map(({ name }) => name);
    expect(names).toContain(`response.${deltas}.delta`);
    expect(names).toContain(`response.${deltas}.done`);
  });
});

test("a warm-up of a socket is whole too, with options of which only a part is set", async () => {
  using socket = await openSocket(caller.baseUrl, caller.key);
  const options = { tools: [{ type: "function", name: "look" }], reasoning: { summary: "auto" } };
  const frames = await socket.create({ ...options, text: { verbosity: "low" }, generate: false });
  const [begun, done] = frames.map((frame) => response.parse(frame.response));
  expect([begun?.status, done?.status]).toEqual(["in_progress", "completed"]);
  expect(done?.reasoning).toEqual({ effort: null, summary: "auto" });
  expect(done?.text).toEqual({ format: { type: "text" }, verbosity: "low" });
});
