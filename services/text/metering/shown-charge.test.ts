import { expect, test } from "vitest";
import { createWorkshop } from "#kit/threads/workshop.ts";
import { createLargeAnswers } from "../large/index.ts";
import { lastFramesShown, withShownCost } from "./shown-usage.ts";

const usage = { input_tokens: 1, output_tokens: 2 };
const shown = { cost: 0.000005, costUsdMicros: 5, ...usage };
const metered = { accountId: "acct_1" };
const bytesOf = (value: unknown) => Buffer.from(JSON.stringify(value));
const frameOf = (event: object) =>
  Buffer.from(`event: response.completed\ndata: ${JSON.stringify(event)}\n\n`);
const readFrame = (frame: Uint8Array) =>
  JSON.parse(Buffer.from(frame).toString().split("\ndata: ")[1] ?? "");
const logprobs = Array.from({ length: 20_000 }, (_, at) => ({ token: ' "usage":{', logprob: at }));
const large = { output: [{ content: [{ text: '"usage":{'.repeat(9), logprobs }] }] };

/** Threads for large answers that take no work, like threads that are all busy for too long. */
async function noThreads() {
  const workshop = createWorkshop();
  await workshop[Symbol.asyncDispose]();
  return createLargeAnswers(workshop);
}

test("a large answer shows its cost, also while the threads are busy", async () => {
  const threads = await noThreads();
  const body = bytesOf({ ...large, usage });
  expect(body.length).toBeGreaterThan(600_000);
  const told = await withShownCost("responses", body, { cost: 5n }, threads, metered);
  expect(JSON.parse(Buffer.from(told).toString())).toEqual({ ...large, usage: shown });
  const event = { type: "response.completed", response: { ...large, usage } };
  const charge = { cost: 5n, inChunk: false };
  const frames = await lastFramesShown("responses", frameOf(event), charge, threads, metered);
  expect(frames.map(readFrame)).toEqual([{ ...event, response: { ...large, usage: shown } }]);
});

const tools = [{ parameters: { properties: { usage: { type: "object" } } } }];
const metadata = { "a \\": '{"usage":{', response: "}" };

test.each([
  ["of an answer", { tools, usage, metadata }, { tools, usage: shown, metadata }],
  ["before what holds another", { usage, tools }, { usage: shown, tools }],
  ["of an event", { a: [1, { usage }], response: { tools, usage } }, undefined],
  ["that is empty", { usage: {} }, { usage: { cost: 0.000005, costUsdMicros: 5 } }],
  ["that is none, beside a tool's", { tools, usage: null }, { tools, usage: null }],
  [
    "that is missing, beside a tool's",
    { tools, response: { tools } },
    { tools, response: { tools } },
  ],
])("the cost stands in the usage %s", async (_, given, wanted) => {
  const threads = await noThreads();
  const expected = wanted ?? { a: [1, { usage }], response: { tools, usage: shown } };
  for (const indent of [0, 2]) {
    const body = Buffer.from(JSON.stringify(given, null, indent));
    const told = await withShownCost("responses", body, { cost: 5n }, threads, metered);
    expect(JSON.parse(Buffer.from(told).toString())).toEqual(expected);
  }
});
