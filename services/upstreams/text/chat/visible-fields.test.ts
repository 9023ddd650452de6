import { expect, test } from "vitest";
import type { JsonObject, JsonValue } from "#kit/base/json.ts";
import { createSseParser } from "#kit/upstream/sse.ts";
import { textLimits } from "../limits.ts";
import type { AnswerEvent } from "../port.ts";
import { NativeChat } from "./native.ts";

const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
const head = { id: "up_1", object: "chat.completion.chunk", created: 7, model: "up" };
const choice = (delta: JsonValue) => ({ index: 0, delta, logprobs: null, finish_reason: null });

/** Reads a chunk with these fields in the place of its own, behind a chunk with text. */
function readChunk(fields: JsonObject) {
  const facts = { id: "ours", modelId: "chat-1", nowS: () => 1, withUsage: true };
  const reader = new NativeChat(facts);
  const out: AnswerEvent[] = [];
  const chunks = ["one ", "two"].map((content) => ({ ...head, choices: [choice({ content })] }));
  const bytes = [chunks[0], { ...chunks[1], ...fields }].map(
    (chunk) => `data: ${JSON.stringify(chunk)}\n\n`,
  );
  for (const event of createSseParser({ maxEventBytes: 1e7 }).push(Buffer.from(bytes.join("")))) {
    reader.read(event, out);
  }
  reader.settle(out);
  const text = out.map((event) => event.text).join("");
  return { reader, text, frames: Buffer.concat(out.map((event) => event.frame)).toString() };
}

test("usage in a chunk with text is noted, wherever it stands", () => {
  const said = { content: "two" };
  for (const fields of [
    { usage },
    { x_groq: { usage } },
    { choices: [{ ...choice(said), usage }] },
    { choices: [choice({ ...said, usage })] },
    { choices: [{ ...choice(said), message: { usage } }] },
  ]) {
    const { reader, text } = readChunk(fields);
    expect(reader.usage, JSON.stringify(fields)).toMatchObject({ inputTokens: 3, outputTokens: 2 });
    expect(text).toBe("one two");
  }
  expect(readChunk({}).reader.usage).toBeUndefined();
});

test("reasoning, further choices and text of other names count as output beside the text", () => {
  const thinking = readChunk({ choices: [choice({ content: "two", reasoning: "why" })] });
  expect(thinking.text).toBe("one twowhy");
  expect(thinking.reader.unseen.shownCharacters).toBe(3);
  const both = [choice({ content: "two" }), { ...choice({ content: "three" }), index: 1 }];
  expect(readChunk({ choices: both }).text).toBe("one twothree");
  expect(readChunk({ choices: [choice({ content: "two", refusal: "no" })] }).text).toBe(
    "one twono",
  );
});

test("an error, too many choices or too deep a chunk end the stream", () => {
  let deep: JsonValue = [];
  for (let depth = 0; depth < 1_100; depth++) deep = [deep];
  for (const fields of [
    { error: { message: "x" } },
    { object: "error" },
    { choices: [{ ...choice({ content: "two" }), finish_reason: "error" }] },
    { choices: Array(textLimits.pieces + 1).fill(choice({ content: "" })) },
    { choices: [{ ...choice({ content: "two" }), logprobs: deep }] },
    { choices: "none" },
  ]) {
    const { reader, text } = readChunk(fields);
    expect([reader.isStopped, text], JSON.stringify(fields).slice(0, 100)).toEqual([true, "one "]);
  }
});

test("a field beside the text that callers do not see is not shown", () => {
  for (const fields of [
    { echo: "SECRET PROMPT" },
    { choices: [{ ...choice({ content: "two" }), echo: "SECRET PROMPT" }] },
    { choices: [choice({ content: "two", echo: { all: "SECRET PROMPT" } })] },
  ]) {
    const { frames } = readChunk(fields);
    expect(frames).toContain('"two"');
    expect(frames).not.toContain("SECRET PROMPT");
  }
});
