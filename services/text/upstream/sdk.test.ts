import OpenAI from "openai";
import { expect, test } from "vitest";
import {
  collect,
  testContext,
  testRequest,
  testUpstream,
} from "../../../test/support/text-requests.ts";
import { createTextUpstreams } from "./index.ts";
import type { StreamAnswer } from "./port.ts";

// The official SDK checks ids, indexes and order of every event it accumulates.

const texts = createTextUpstreams(testContext());

/** An SDK whose requests the builtin upstream answers. */
function sdk(operation: "responses" | "chat"): OpenAI {
  return new OpenAI({
    apiKey: "key",
    maxRetries: 0,
    fetch: async (_url, init) => {
      const body = JSON.parse(`${init?.body}`);
      const request = testRequest(operation, [testUpstream("BUILTIN")], { fields: body });
      const answer = await texts.send({ ...request, stream: body.stream === true });
      if (answer.kind === "json") {
        return new Response(Buffer.from(answer.body), {
          headers: { "content-type": "application/json" },
        });
      }
      const { wire } = await collect(answer as StreamAnswer);
      return new Response(`${wire}data: [DONE]\n\n`, {
        headers: { "content-type": "text/event-stream" },
      });
    },
  });
}

const weather = {
  type: "object",
  properties: { city: { type: "string" }, unit: { type: "string", enum: ["c", "f"] } },
  required: ["city", "unit"],
};

test("responses: the stream accumulates to what the whole answer says", async () => {
  const input = "Tell me about foxes";
  const whole = await sdk("responses").responses.create({ model: "chat-1", input });
  const stream = sdk("responses").responses.stream({ model: "chat-1", input });
  const types = new Set<string>();
  for await (const event of stream) types.add(event.type);
  const final = await stream.finalResponse();
  expect(final.output_text).toBe(whole.output_text);
  expect(final.output_text).toContain("foxes");
  expect(final.usage).toEqual(whole.usage);
  expect(types).toContain("response.output_text.delta");
});

test("responses: a function call accumulates", async () => {
  const tools = [
    { type: "function" as const, name: "get_weather", parameters: weather, strict: true },
  ];
  const input = "What is the weather in Paris?";
  const stream = sdk("responses").responses.stream({ model: "chat-1", input, tools });
  const final = await stream.finalResponse();
  const [call] = final.output;
  expect(call?.type).toBe("function_call");
  if (call?.type === "function_call") {
    expect(JSON.parse(call.arguments)).toMatchObject({ city: "Paris" });
  }
});

test("chat: stream, usage and tool calls accumulate", async () => {
  const messages = [{ role: "user" as const, content: "What is the weather in Oslo?" }];
  const stream = sdk("chat").chat.completions.stream({
    model: "chat-1",
    messages,
    stream_options: { include_usage: true },
  });
  const final = await stream.finalChatCompletion();
  expect(final.choices[0]?.message.content).toContain("Oslo");
  expect(final.usage?.total_tokens).toBeGreaterThan(0);
  const tools = [
    { type: "function" as const, function: { name: "get_weather", parameters: weather } },
  ];
  const called = await sdk("chat")
    .chat.completions.stream({ model: "chat-1", messages, tools })
    .finalChatCompletion();
  const [call] = called.choices[0]?.message.tool_calls ?? [];
  expect(called.choices[0]?.finish_reason).toBe("tool_calls");
  if (call?.type === "function") {
    expect(JSON.parse(call.function.arguments)).toMatchObject({ city: "Oslo" });
  }
});
