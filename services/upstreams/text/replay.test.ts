import { expect, test } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import {
  readEvents,
  testContext,
  testRequest,
  testUpstream,
} from "../../../test/support/text-requests.ts";
import { createTextUpstreams } from "./index.ts";
import { bytesOfBody, type JsonAnswer } from "./port.ts";
import { replayedEvents } from "./replay.ts";

const texts = createTextUpstreams(testContext());

async function wholeAnswer(operation: "responses" | "chat", fields: JsonObject = {}) {
  const request = testRequest(operation, [testUpstream("BUILTIN")], { fields });
  const answer = (await texts.send(request)) as JsonAnswer;
  return {
    answer,
    body: JSON.parse(Buffer.from(bytesOfBody(answer.body)).toString()) as JsonObject,
  };
}

test("a kept response as a stream: the same object at its end, the same text and usage", async () => {
  const { answer, body } = await wholeAnswer("responses");
  const events = replayedEvents("responses", body, { withUsage: false });
  const { data } = readEvents(events);
  expect(data[0].type).toBe("response.created");
  expect(data.map((event) => event.sequence_number)).toEqual(data.map((_, i) => i));
  expect(data.at(-1).response).toEqual(body);
  expect(events.map((event) => event.text).join("")).toBe(answer.outputText);
  expect(events.at(-1)).toMatchObject({ ending: "completed", usage: answer.usage });
});

test("a kept completion as a stream: role, text or calls, reason, usage where it is wanted", async () => {
  const { answer, body } = await wholeAnswer("chat");
  const events = replayedEvents("chat", body, { withUsage: true });
  const { data } = readEvents(events);
  expect(data.map((chunk) => chunk.id)).toEqual(data.map(() => body.id));
  expect(data[0].choices[0]).toMatchObject({ delta: { role: "assistant" }, finish_reason: null });
  expect(data.at(-2).choices[0].finish_reason).toBe("stop");
  expect(data.at(-1)).toMatchObject({ choices: [], usage: body.usage });
  expect(events.map((event) => event.text).join("")).toBe(answer.outputText);
  const without = readEvents(replayedEvents("chat", body, { withUsage: false })).data;
  expect(without.at(-1).choices[0].finish_reason).toBe("stop");

  const tools = [{ type: "function", function: { name: "f", parameters: { type: "object" } } }];
  const called = await wholeAnswer("chat", { tools });
  const chunks = readEvents(replayedEvents("chat", called.body, { withUsage: false })).data;
  expect(chunks[0].choices[0].delta.tool_calls[0]).toMatchObject({
    index: 0,
    type: "function",
    function: { name: "f" },
  });
  expect(chunks.at(-1).choices[0].finish_reason).toBe("tool_calls");
});
