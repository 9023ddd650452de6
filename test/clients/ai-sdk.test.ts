import { createOpenAI } from "@ai-sdk/openai";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import { afterAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { startWorld } from "../e2e/world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();
const provider = createOpenAI({ baseURL: world.baseUrl, apiKey: caller.key });

describe.for([
  ["responses", provider.responses("chat-1")],
  ["chat", provider.chat("chat-1")],
] as const)("the AI SDK on %s", ([, model]) => {
  const quick = { model, maxRetries: 0 };

  test("generateText", async () => {
    const { text, usage, finishReason } = await generateText({ ...quick, prompt: "say hello" });
    expect(text).toBe("hello");
    expect(finishReason).toBe("stop");
    expect(usage.outputTokens).toBe(1);
    expect(usage.inputTokens).toBeGreaterThan(0);
  });

  test("streamText", async () => {
    const result = streamText({ ...quick, prompt: "say good day to you" });
    const pieces: string[] = [];
    for await (const piece of result.textStream) pieces.push(piece);
    expect(pieces.join("")).toBe("good day to you");
    expect(pieces.length).toBeGreaterThan(1);
    expect(await result.finishReason).toBe("stop");
    expect((await result.usage).outputTokens).toBe(4);
  });

  test.for(["generate", "stream"])("tools over two steps (%s)", async (form) => {
    const cities: string[] = [];
    const tools = {
      get_weather: tool({
        description: "The weather of a city",
        inputSchema: z.object({ city: z.string() }),
        execute: async ({ city }) => {
          cities.push(city);
          return "21 degrees, sunny";
        },
      }),
    };
    const asked = { ...quick, prompt: "Weather in Paris?", tools, stopWhen: stepCountIs(3) };
    const text =
      form === "generate" ? (await generateText(asked)).text : await streamText(asked).text;
    expect(text).toContain("21 degrees");
    expect(cities).toHaveLength(1);
  });

  test("an object by its schema", async () => {
    const schema = z.object({ name: z.string(), age: z.number() });
    const { output } = await generateText({
      ...quick,
      prompt: "Ada Lovelace, 36",
      output: Output.object({ schema }),
    });
    expect(schema.parse(output)).toEqual(output);
  });

  test("an error names its code", async () => {
    const none = model === undefined ? model : provider.responses("none");
    await expect(generateText({ ...quick, model: none, prompt: "Hi" })).rejects.toMatchObject({
      statusCode: 400,
      data: { error: { code: "model_not_found", param: "model" } },
    });
  });
});
