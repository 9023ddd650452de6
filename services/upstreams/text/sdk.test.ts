import OpenAI from "openai";
import { expect, test } from "vitest";
import { startScriptedUpstream } from "../../../test/support/scripted-upstream.ts";
import {
  collect,
  testContext,
  testRequest,
  testUpstream,
} from "../../../test/support/text-requests.ts";
import { createTextUpstreams } from "./index.ts";
import { bytesOfBody, type StreamAnswer } from "./port.ts";

// The official SDK checks the ids, indexes and order of all events that it accumulates.

const texts = createTextUpstreams(testContext());

/** An SDK whose requests are answered by an upstream, by default the builtin one. */
function sdk(operation: "responses" | "chat", upstream = testUpstream("BUILTIN")): OpenAI {
  return new OpenAI({
    apiKey: "key",
    maxRetries: 0,
    fetch: async (_url, init) => {
      const body = JSON.parse(`${init?.body}`);
      const request = testRequest(operation, [upstream], { fields: body });
      const answer = await texts.send({ ...request, stream: body.stream === true });
      if (answer.kind === "json") {
        return new Response(Buffer.from(bytesOfBody(answer.body)), {
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

test("responses: what sloppy upstreams stream accumulates all the same", async () => {
  await using server = await startScriptedUpstream();
  const upstream = testUpstream("OPENAI", { baseUrl: server.baseUrl });
  const call = { type: "function_call", call_id: "call_1", name: "f", arguments: '{"a":1}' };
  const said = (text: string) => ({
    type: "message",
    id: "other",
    role: "assistant",
    content: [{ type: "output_text", text }],
  });
  const delta = (text: string) => ({ type: "response.output_text.delta", delta: text });
  const ends = [
    { type: "response.completed", response: { output: [said("Hello")] } },
    { type: "response.completed", response: {} },
    { type: "response.completed", response: { output: [said("Hello"), call] } },
  ];
  for (const end of ends) {
    server.script({ kind: "events", events: [delta("Hel"), delta("lo"), end] });
    const stream = sdk("responses", upstream).responses.stream({ model: "chat-1", input: "Hi" });
    const final = await stream.finalResponse();
    expect(final.output_text).toBe("Hello");
    expect(final.status).toBe("completed");
  }
  const thinking = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "x" };
  server.script({
    kind: "events",
    events: [
      { type: "response.output_item.added", output_index: 0, item: { type: "reasoning" } },
      { type: "response.reasoning_text.delta", output_index: 0, delta: "hm" },
      { type: "response.output_item.done", output_index: 0, item: thinking },
      { type: "response.output_item.added", output_index: 1, item: { ...call, arguments: "" } },
      { type: "response.output_item.done", output_index: 1, item: call },
      { type: "response.completed", response: { output: [thinking, call] } },
    ],
  });
  const stream = sdk("responses", upstream).responses.stream({ model: "chat-1", input: "Hi" });
  const final = await stream.finalResponse();
  expect(final.output.map(({ type }) => type)).toEqual(["reasoning", "function_call"]);
  server.script({ kind: "ok", break: { how: "destroy", after: 2 } });
  const cut = sdk("responses", upstream).responses.stream({ model: "chat-1", input: "Hi" });
  const types: string[] = [];
  for await (const event of cut) types.push(event.type);
  expect(types.at(-1)).toBe("response.failed");
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
