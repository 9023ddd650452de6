import { expect, test } from "vitest";
import { createWorkshop } from "#kit/threads/workshop.ts";
import { promptly } from "../../../test/support/promptly.ts";
import { maxKeptAnswerBytes } from "../base/limits.ts";
import { createLargeAnswers } from "../large/index.ts";
import { createCollector, eventsOfAnswer } from "./replay.ts";

const chunk = (delta: string, finish: string | null = null) => ({
  frame: Buffer.from(
    `data: {"id":"c","choices":[{"index":0,"delta":${delta},"finish_reason":${JSON.stringify(finish)}}]}\n\n`,
  ),
  text: "",
});

test("a delta named like the prototype of all objects changes no other object", async () => {
  const collector = createCollector("chat", "acct_1", createLargeAnswers(createWorkshop()));
  collector.add(chunk('{"role":"assistant","content":"Hi"}'));
  collector.add(chunk('{"__proto__":{"polluted":"yes"},"constructor":{"prototype":{"bad":1}}}'));
  collector.add(chunk("{}", "stop"));
  const answer = await collector.answer(undefined, undefined);
  try {
    expect(({} as { polluted?: string }).polluted).toBeUndefined();
    expect(({} as { bad?: number }).bad).toBeUndefined();
    expect(JSON.parse(`${answer}`).choices[0].message).toMatchObject({ content: "Hi" });
  } finally {
    Reflect.deleteProperty(Object.prototype, "polluted");
  }
});

test("nothing more is put together of a chat that is too large to keep", async () => {
  const collector = createCollector("chat", "acct_1", createLargeAnswers(createWorkshop()));
  const content = "sea ".repeat(2_048);
  const most = Math.ceil(maxKeptAnswerBytes / content.length);
  for (let n = 0; n <= most; n++) collector.add(chunk(JSON.stringify({ content })));
  collector.add(chunk("{}", "stop"));
  expect(await collector.answer(undefined, undefined)).toBeUndefined();
});

test("one whose pieces are large in all, and its text is not, is kept", async () => {
  const collector = createCollector("chat", "acct_1", createLargeAnswers(createWorkshop()));
  const { frame } = chunk('{"role":"assistant","content":"Hi"}');
  const padded = {
    frame: Buffer.concat([Buffer.from(`: ${"x".repeat(65_536)}\n`), frame]),
    text: "",
  };
  for (let n = 0; n < 200; n++) collector.add(padded);
  collector.add(chunk("{}", "stop"));
  expect(JSON.parse(`${await collector.answer(undefined, undefined)}`)).toMatchObject({
    choices: [{ message: { role: "assistant", content: "Hi".repeat(200) } }],
  });
});

test("the log probabilities of a long chat are put together as they come", async () => {
  const collector = createCollector("chat", "acct_1", createLargeAnswers(createWorkshop()));
  const tokens = Array.from({ length: 20_000 }, (_, n) => ({ token: `${n}`, logprob: n }));
  const pieces = tokens.map((token) => ({
    frame: Buffer.from(
      `data: ${JSON.stringify({ choices: [{ delta: {}, logprobs: { content: [token] } }] })}\n\n`,
    ),
    text: "",
  }));
  await promptly(1_000, () => {
    for (const piece of pieces) collector.add(piece);
  });
  collector.add(chunk("{}", "stop"));
  const answer = JSON.parse(`${await collector.answer(undefined, undefined)}`);
  expect(answer.choices[0].logprobs).toEqual({ content: tokens });
});

test("a kept message is streamed again with the numbers of its calls", async () => {
  const input = '{"at":1.50,"id":12345678901234567890}';
  const frames = [
    '{"type":"message_start","message":{"id":"msg_1"}}',
    '{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"a","input":{}}}',
    `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":${JSON.stringify(input)}}}`,
    '{"type":"content_block_stop","index":0}',
    '{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{}}',
  ];
  const collector = createCollector("messages", "acct_1", createLargeAnswers(createWorkshop()));
  for (const frame of frames) collector.add({ frame: Buffer.from(`data: ${frame}\n\n`), text: "" });
  const kept = (await collector.answer(undefined, undefined)) ?? expect.unreachable();
  expect(`${Buffer.from(kept)}`).toContain(`"input":${input}`);
  const { bytes } = eventsOfAnswer(kept, "messages", "events");
  expect(`${Buffer.from(bytes)}`).toContain(JSON.stringify(input));
});
