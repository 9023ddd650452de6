import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import type {
  ResponseInput,
  Response as ResponseObject,
  ResponseStreamEvent,
} from "openai/resources/responses/responses";
import { afterAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();
const client = new OpenAI({ baseURL: world.baseUrl, apiKey: caller.key, maxRetries: 0 });
const model = "chat-1";

const look = {
  type: "function",
  name: "get_weather",
  description: "The weather of a city",
  parameters: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  },
  strict: true,
} as const;

describe("client.responses", () => {
  test("create", async () => {
    const response = await client.responses.create({ model, input: "say hello" });
    expect(response.output_text).toBe("hello");
    expect(response.model).toBe(model);
    expect(response.status).toBe("completed");
    expect(response.usage?.output_tokens).toBe(1);
    expect(response._request_id).toMatch(/./);
  });

  test("create with stream", async () => {
    const stream = await client.responses.create({ model, input: "say good day", stream: true });
    const events: ResponseStreamEvent[] = [];
    for await (const event of stream) events.push(event);
    const text = events.map((event) =>
      event.type === "response.output_text.delta" ? event.delta : "",
    );
    expect(text.join("")).toBe("good day");
    const last = events.at(-1);
    expect(last?.type).toBe("response.completed");
    expect(last?.type === "response.completed" && last.response.usage?.total_tokens).toBeTruthy();
  });

  test("the stream helper puts the response together", async () => {
    const stream = client.responses.stream({ model, input: "Tell me of the sea." });
    let deltas = "";
    stream.on("response.output_text.delta", (event) => {
      deltas += event.delta;
    });
    const response = await stream.finalResponse();
    expect(response.output_text).toBe(deltas);
    expect(deltas.length).toBeGreaterThan(20);
  });

  test("a tool call in two turns, with and without a stream", async () => {
    for (const stream of [false, true]) {
      const ask = (input: ResponseInput): Promise<ResponseObject> =>
        stream
          ? client.responses.stream({ model, input, tools: [look] }).finalResponse()
          : client.responses.create({ model, input, tools: [look] });
      const input: ResponseInput = [{ role: "user", content: "Weather in Paris?" }];
      const first = await ask(input);
      const call = first.output.find((item) => item.type === "function_call");
      expect(call?.name).toBe("get_weather");
      expect(JSON.parse(call?.arguments ?? "")).toEqual({ city: expect.any(String) });
      const output = {
        type: "function_call_output",
        call_id: call?.call_id ?? "",
        output: "21 degrees, sunny",
      } as const;
      const second = await ask([...input, ...(first.output as ResponseInput), output]);
      expect(second.output_text).toContain("21 degrees");
    }
  });

  test("structured output is parsed", async () => {
    const person = z.object({ name: z.string(), age: z.number() });
    const response = await client.responses.parse({
      model,
      input: "Ada Lovelace, 36",
      text: { format: zodTextFormat(person, "person") },
    });
    expect(person.parse(response.output_parsed)).toEqual(response.output_parsed);
  });

  test("compact, and continue with its output", async () => {
    const compacted = await client.responses.compact({
      model,
      input: [{ role: "user", content: "My cat is called Archimedes." }],
    });
    expect(compacted.object).toBe("response.compaction");
    const next = await client.responses.create({
      model,
      input: [...(compacted.output as ResponseInput), { role: "user", content: "And now?" }],
    });
    expect(next.output_text).toContain("Archimedes");
  });

  test("an answer's encrypted reasoning goes back with the next turn", async () => {
    const include = ["reasoning.encrypted_content" as const];
    const first = await client.responses.create({ model, input: "Hi", include, store: false });
    const reasoning = first.output.find((item) => item.type === "reasoning");
    expect(reasoning?.encrypted_content).toMatch(/./);
    const before = first.output as ResponseInput;
    const again: ResponseInput = [...before, { role: "user", content: "say hello" }];
    const second = await client.responses.create({ model, input: again, store: false });
    expect(second.output_text).toBe("hello");
  });

  test("an image is seen", async () => {
    const png =
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const image_url = `data:image/png;base64,${png}`;
    const response = await client.responses.create({
      model,
      input: [{ role: "user", content: [{ type: "input_image", image_url, detail: "auto" }] }],
    });
    expect(response.output_text).toMatch(/PNG/);
  });
});

describe("a caller that aborts", () => {
  ownWorldOnly();

  test("closes the upstream connection", async () => {
    const seen = world.play({ kind: "ok", break: { how: "hang", after: 1 } });
    const stream = await client.responses.create({ model: "scripted", input: "Hi", stream: true });
    for await (const event of stream) {
      if (event.type === "response.output_text.delta") break;
    }
    await seen[0]?.over;
    expect(seen[0]?.aborted).toBe(true);
  });

  test("a stream that breaks ends with response.failed", async () => {
    world.play({ kind: "ok", usage: null, break: { how: "destroy", after: 2 } });
    const stream = await client.responses.create({ model: "scripted", input: "Hi", stream: true });
    const types: string[] = [];
    for await (const event of stream) types.push(event.type);
    expect(types.at(-1)).toBe("response.failed");
  });
});
