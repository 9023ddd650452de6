import OpenAI from "openai";
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions";
import { afterAll, describe, expect, test } from "vitest";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();
const client = new OpenAI({ baseURL: world.baseUrl, apiKey: caller.key, maxRetries: 0 });
const model = "chat-1";
const messages: ChatCompletionMessageParam[] = [{ role: "user", content: "say hello" }];

describe("client.chat.completions", () => {
  test("create", async () => {
    const completion = await client.chat.completions.create({ model, messages });
    expect(completion.choices[0]?.message.content).toBe("hello");
    expect(completion.usage?.completion_tokens).toBe(1);
  });

  test("create with stream", async () => {
    const stream = await client.chat.completions.create({
      model,
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = "";
    let total = 0;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      total = chunk.usage?.total_tokens ?? total;
    }
    expect(text).toBe("hello");
    expect(total).toBeGreaterThan(1);
  });

  test("the stream helper puts the completion together", async () => {
    const stream = client.chat.completions.stream({ model, messages });
    expect(await stream.finalContent()).toBe("hello");
    const completion = await stream.finalChatCompletion();
    expect(completion.choices[0]?.finish_reason).toBe("stop");
  });

  test.for([false, true])(
    "runTools calls, and answers by the result (stream: %s)",
    async (stream) => {
      const asked: string[] = [];
      const runner = client.chat.completions.runTools({
        model,
        messages: [{ role: "user", content: "Weather in Paris?" }],
        stream,
        tools: [
          {
            type: "function",
            function: {
              name: "get_weather",
              description: "The weather of a city",
              parameters: {
                type: "object",
                properties: { city: { type: "string" } },
                required: ["city"],
              },
              parse: JSON.parse,
              function: ({ city }: { city: string }) => {
                asked.push(city);
                return "21 degrees, sunny";
              },
            },
          },
        ],
      } as Parameters<typeof client.chat.completions.runTools>[0]);
      expect(await runner.finalContent()).toContain("21 degrees");
      expect(asked).toHaveLength(1);
    },
  );
});

describe("client.models", () => {
  test("list and retrieve", async () => {
    const ids: string[] = [];
    for await (const one of client.models.list()) ids.push(one.id);
    expect(ids).toContain(model);
    const one = await client.models.retrieve(model);
    expect(one).toMatchObject({ id: model, object: "model", maxInputTokens: expect.any(Number) });
  });
});

describe("error classes", () => {
  const errorOf = (work: Promise<unknown>) =>
    work.then(
      () => undefined,
      (error: unknown) => error,
    );

  test("follow the statuses, with code, param and request id", async () => {
    const wrong = new OpenAI({ baseURL: world.baseUrl, apiKey: "wrong", maxRetries: 0 });
    const unauthorized = await errorOf(wrong.models.list());
    expect(unauthorized).toBeInstanceOf(OpenAI.AuthenticationError);
    expect(unauthorized).toMatchObject({ code: "invalid_api_key", status: 401 });
    const bad = await errorOf(client.responses.create({ model: "none", input: "Hi" }));
    expect(bad).toBeInstanceOf(OpenAI.BadRequestError);
    expect(bad).toMatchObject({
      code: "model_not_found",
      param: "model",
      type: "invalid_request_error",
      requestID: expect.stringMatching(/./),
    });
    const missing = await errorOf(client.get("/nope"));
    expect(missing).toBeInstanceOf(OpenAI.NotFoundError);
  });
});

describe("with an upstream", () => {
  ownWorldOnly();
  const patient = new OpenAI({ baseURL: world.baseUrl, apiKey: caller.key, maxRetries: 2 });

  test("a failure that may pass is tried again, one that will not is not", async () => {
    const seen = world.play((request) =>
      request === world.upstream.requests[0] ? { kind: "status", status: 500 } : { kind: "ok" },
    );
    const response = await patient.responses.create({ model: "scripted", input: "Hi" });
    expect(response.output_text).toBe("Hello from upstream.");
    expect(seen).toHaveLength(2);
    const poor = await world.caller({ usdMicros: 1n });
    const client = new OpenAI({ baseURL: world.baseUrl, apiKey: poor.key, maxRetries: 2 });
    let attempts = 0;
    const counting = client.withOptions({
      fetch: (...args) => {
        attempts++;
        return fetch(...args);
      },
    });
    const refused = await counting.responses
      .create({ model: "scripted", input: "Hi" })
      .catch((error: unknown) => error);
    expect(refused).toMatchObject({ status: 402, code: "insufficient_balance" });
    expect(attempts).toBe(1);
  });

  test("a repeat under an idempotency key is one request", async () => {
    const seen = world.play();
    const ask = () =>
      client.responses.create(
        { model: "scripted", input: "Hi" },
        { headers: { "Idempotency-Key": "sdk-1" } },
      );
    expect((await ask()).id).toBe((await ask()).id);
    expect(seen).toHaveLength(1);
  });

  test("a chat stream that breaks throws, and is never taken for complete", async () => {
    world.play({ kind: "ok", usage: null, break: { how: "destroy", after: 2 } });
    for (const target of ["scripted", "legacy"]) {
      const stream = await client.chat.completions.create({
        model: target,
        messages,
        stream: true,
      });
      const read = async () => {
        for await (const _ of stream);
      };
      await expect(read()).rejects.toMatchObject({ code: "model_request_failed" });
    }
  });

  test("rate limits are RateLimitErrors", async () => {
    const slow = await world.withKey(caller, { requestsPerMinute: 1 });
    const limited = new OpenAI({ baseURL: world.baseUrl, apiKey: slow.key, maxRetries: 0 });
    await limited.models.list();
    await expect(limited.models.list()).rejects.toBeInstanceOf(OpenAI.RateLimitError);
  });
});
