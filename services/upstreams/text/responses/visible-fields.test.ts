import { expect, test } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import { createSseParser } from "#kit/upstream/sse.ts";
import { facts, frame, inPart, usage } from "../../../../test/support/responses-streams.ts";
import { ChatFromResponses } from "../chat/from-responses.ts";
import type { AnswerEvent } from "../port.ts";
import type { StreamReader } from "../stream-reader.ts";
import { ResponsesReader } from "./reader.ts";

const prompt = "SECRET PROMPT";
const readers: Record<string, () => StreamReader> = {
  responses: () => new ResponsesReader(facts({ developerPrompt: prompt })),
  chat: () => new ChatFromResponses({ ...facts(), withUsage: true }),
};

/** Reads a delta with these fields beside its own, behind another delta. */
function readDelta(make: () => StreamReader, fields: JsonObject) {
  const reader = make();
  const out: AnswerEvent[] = [];
  const delta = (text: string, more: JsonObject) =>
    frame({ type: "response.output_text.delta", ...inPart, delta: text, logprobs: [], ...more });
  const bytes = Buffer.from(delta("one ", {}) + delta("two", fields));
  for (const event of createSseParser({ maxEventBytes: 1e6 }).push(bytes)) reader.read(event, out);
  reader.settle(out);
  const text = out.map((event) => event.text).join("");
  return { reader, out, text, frames: Buffer.concat(out.map((event) => event.frame)).toString() };
}

/** A list in a list, deeper than an answer may be. */
function deepList(): JsonObject[string] {
  let list: JsonObject[string] = [];
  for (let depth = 0; depth < 1_100; depth++) list = [list];
  return list;
}

for (const [name, make] of Object.entries(readers)) {
  test(`${name}: usage beside a delta is noted, wherever it stands`, () => {
    for (const fields of [
      { usage },
      { response: { usage } },
      { error: { usage } },
      { x_groq: { usage } },
    ]) {
      const { reader, text } = readDelta(make, fields);
      expect(reader.usage, JSON.stringify(fields)).toMatchObject({
        inputTokens: 3,
        outputTokens: 2,
      });
      expect(text).toBe("one two");
    }
    expect(readDelta(make, {}).reader.usage).toBeUndefined();
  });

  test(`${name}: a delta that is nested too deep ends the stream, as one without an item does not`, () => {
    const deep = readDelta(make, { logprobs: deepList() });
    expect([deep.text, deep.reader.isStopped]).toEqual(["one ", true]);
    const nothing = readDelta(make, { item: null });
    expect([nothing.text, nothing.reader.isStopped]).toEqual(["one ", false]);
  });

  test(`${name}: the prompt beside a delta is not shown`, () => {
    const { text, frames } = readDelta(make, { echo: prompt });
    expect(text).toBe("one two");
    expect(frames).not.toContain(prompt);
  });
}
