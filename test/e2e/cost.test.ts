import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { isOwnWorld, ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();
beforeEach(() => {
  if (isOwnWorld) world.play();
});

const response = { model: "scripted", input: "Hi" };
const chat = { model: "scripted", messages: [{ role: "user", content: "Hi" }] };
const header = "x-genmesh-cost-usd-micros";
const shown = { cost: 0.00003, costUsdMicros: 30 };

describe("what an answer cost stands on it", () => {
  test("in its usage and a header, and in its repeat", async () => {
    const caller = await world.caller();
    for (const [path, body] of [
      ["/responses", response],
      ["/responses/compact", response],
      ["/chat/completions", chat],
    ] as const) {
      const idempotencyKey = `cost ${path}`;
      const answer = await caller.post(path, body, { idempotencyKey });
      expect(answer.json.usage).toMatchObject(shown);
      expect(answer.headers.get(header)).toBe("30");
      const again = await caller.post(path, body, { idempotencyKey });
      expect(again.text).toBe(answer.text);
      expect(again.headers.get(header)).toBe("30");
    }
    expect((await caller.balance()).monthSpend).toBe(90);
  });

  test("in the last usage of a stream, and of its repeat", async () => {
    const caller = await world.caller();
    for (const _time of ["first", "repeat"]) {
      const options = { idempotencyKey: "streamed response" };
      const events = await caller.stream("/responses", response, options);
      const last = events.find(({ name }) => name === "response.completed");
      expect(JSON.parse(last?.data ?? "{}").response.usage).toMatchObject(shown);
      const asked = { ...chat, stream_options: { include_usage: true } };
      const ofChat = { idempotencyKey: "streamed chat" };
      const chunks = (await caller.stream("/chat/completions", asked, ofChat))
        .filter(({ data }) => data !== "[DONE]")
        .map(({ data }) => JSON.parse(data ?? "{}"));
      expect(chunks.findLast(({ usage }) => usage)?.usage).toMatchObject(shown);
    }
    expect((await caller.balance()).monthSpend).toBe(60);
  });

  test("also where a tool that is told again has a property called usage", async () => {
    const caller = await world.caller();
    const parameters = { type: "object", properties: { usage: { type: "object" } } };
    const tools = [{ type: "function", name: "note", parameters }];
    const { json } = await caller.post("/responses", { ...response, tools });
    expect(json.usage).toMatchObject(shown);
    expect(json.tools[0].parameters).toEqual(parameters);
  });
});

test("an input is counted before it is sent, and costs nothing", async () => {
  const caller = await world.caller({ usdMicros: 1n });
  const body = { ...response, max_output_tokens: 100 };
  const { status, json } = await caller.post("/responses/input_tokens", body);
  expect(status).toBe(200);
  expect(json).toEqual({
    object: "response.input_tokens",
    input_tokens: expect.any(Number),
    costUsdMicros: expect.any(Number),
    holdUsdMicros: expect.any(Number),
  });
  expect(json.input_tokens).toBeGreaterThan(0);
  expect(json.holdUsdMicros).toBeGreaterThan(json.costUsdMicros);
  const longer = await caller.post("/responses/input_tokens", {
    ...{ ...body, input: "Hi ".repeat(500), max_output_tokens: 200 },
  });
  expect(longer.json.input_tokens).toBeGreaterThan(json.input_tokens + 400);
  expect(longer.json.holdUsdMicros).toBeGreaterThan(json.holdUsdMicros);
  expect(world.upstream.requests).toEqual([]);
  expect((await caller.balance()).available).toBe(1);
  const unknown = await caller.post("/responses/input_tokens", { model: "none", input: "Hi" });
  expect(unknown.json.error.code).toBe("model_not_found");
});
