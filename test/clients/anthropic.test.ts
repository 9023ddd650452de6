import Anthropic from "@anthropic-ai/sdk";
import type { MessageParam, Tool } from "@anthropic-ai/sdk/resources/messages";
import { afterAll, describe, expect, test } from "vitest";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();
const baseURL = world.baseUrl.replace(/\/v1$/, "");
const client = new Anthropic({ baseURL, apiKey: caller.key, maxRetries: 0 });
const model = "chat-1";
const messages: MessageParam[] = [{ role: "user", content: "say hello" }];
const max_tokens = 1_000;
const weather: Tool = {
  name: "get_weather",
  description: "The weather of a city",
  input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

describe("client.messages", () => {
  test("create", async () => {
    const message = await client.messages.create({ model, max_tokens, messages });
    expect(message.content).toMatchObject([{ type: "text", text: "hello" }]);
    expect(message.stop_reason).toBe("end_turn");
    expect(message.usage.output_tokens).toBe(1);
    expect(message._request_id).toMatch(/^req_/);
  });

  test("create with stream", async () => {
    const stream = await client.messages.create({ model, max_tokens, messages, stream: true });
    const types: string[] = [];
    for await (const event of stream) types.push(event.type);
    expect(types[0]).toBe("message_start");
    expect(types.at(-1)).toBe("message_stop");
  });

  test("the stream helper puts the message together, with all of its usage", async () => {
    const stream = client.messages.stream({ model, max_tokens, messages });
    expect(await stream.finalText()).toBe("hello");
    const message = await stream.finalMessage();
    expect(message).toMatchObject({ stop_reason: "end_turn", usage: { output_tokens: 1 } });
    expect(message.usage.input_tokens).toBeGreaterThan(1);
  });

  test.for([false, true])(
    "the tool runner calls, and answers by the result (stream: %s)",
    async (stream) => {
      const asked: unknown[] = [];
      const runner = client.beta.messages.toolRunner({
        ...{ model, max_tokens, stream },
        messages: [{ role: "user", content: "Weather in Paris?" }],
        tools: [
          {
            ...weather,
            parse: (input: unknown) => input,
            run: (input: unknown) => {
              asked.push(input);
              return "21 degrees, sunny";
            },
          },
        ],
      } as Parameters<typeof client.beta.messages.toolRunner>[0]);
      const last = (await runner.runUntilDone()) as { content: { type: string; text?: string }[] };
      expect(last.content.map(({ text }) => text).join("")).toContain("21 degrees");
      expect(asked).toEqual([{ city: expect.any(String) }]);
    },
  );

  test("countTokens", async () => {
    const few = await client.messages.countTokens({ model, messages });
    const more = await client.messages.countTokens({ model, messages, system: "Be very kind." });
    expect(more.input_tokens).toBeGreaterThan(few.input_tokens);
  });
});

test("client.models", async () => {
  const ids: string[] = [];
  for await (const one of client.models.list({ limit: 1_000 })) ids.push(one.id);
  expect(ids).toContain(model);
  expect(await client.models.retrieve(model)).toMatchObject({ id: model, type: "model" });
});

describe("error classes", () => {
  const errorOf = (work: Promise<unknown>) =>
    work.then(
      () => undefined,
      (error: unknown) => error,
    );

  test("follow the statuses, with type and request id", async () => {
    const wrong = new Anthropic({ baseURL, apiKey: "wrong", maxRetries: 0 });
    const unauthorized = await errorOf(wrong.messages.create({ model, max_tokens, messages }));
    expect(unauthorized).toBeInstanceOf(Anthropic.AuthenticationError);
    expect(unauthorized).toMatchObject({ type: "authentication_error" });
    expect(await errorOf(wrong.models.list())).toBeInstanceOf(Anthropic.AuthenticationError);
    const missing = await errorOf(client.messages.create({ model: "none", max_tokens, messages }));
    expect(missing).toBeInstanceOf(Anthropic.NotFoundError);
    expect(missing).toMatchObject({
      ...{ type: "not_found_error", requestID: expect.stringMatching(/^req_/) },
    });
    const bad = await errorOf(client.messages.create({ model, max_tokens: 0, messages }));
    expect(bad).toBeInstanceOf(Anthropic.BadRequestError);
    expect(await errorOf(client.messages.batches.list())).toBeInstanceOf(Anthropic.NotFoundError);
  });
});

describe("with an upstream", () => {
  ownWorldOnly();
  const patient = new Anthropic({ baseURL, apiKey: caller.key, maxRetries: 2 });
  const ask = { model: "scripted", max_tokens, messages };

  test("a failure that may pass is tried again, one that will not is not", async () => {
    const seen = world.play((request) =>
      request === world.upstream.requests[0] ? { kind: "status", status: 429 } : { kind: "ok" },
    );
    expect((await patient.messages.create(ask)).stop_reason).toBe("end_turn");
    expect(seen).toHaveLength(2);
    const poor = await world.caller({ usdMicros: 1n });
    const failing = new Anthropic({ baseURL, apiKey: poor.key, maxRetries: 2 });
    let sent = 0;
    const counting = failing.withOptions({
      fetch: (...asked) => {
        sent++;
        return fetch(...asked);
      },
    });
    await expect(counting.messages.create(ask)).rejects.toMatchObject({
      ...{ status: 402, type: "billing_error" },
    });
    expect(sent).toBe(1);
  });

  test("a stream that breaks is an error of the helper", async () => {
    world.play({ kind: "ok", break: { how: "destroy", after: 2 } });
    await expect(client.messages.stream(ask).finalMessage()).rejects.toMatchObject({
      type: "api_error",
    });
  });

  test("thinking goes back with its signature", async () => {
    const seen = world.play({ kind: "ok", encrypted: "sealed-state" });
    const thinking = { type: "adaptive" } as const;
    const first = await client.messages.stream({ ...ask, thinking }).finalMessage();
    expect(first.content[0]).toMatchObject({ type: "thinking" });
    await client.messages.create({
      ...{ ...ask, thinking },
      messages: [...messages, { role: "assistant", content: first.content }, ...messages],
    });
    expect(JSON.stringify(seen[1]?.body.input)).toContain("sealed-state");
  });
});
