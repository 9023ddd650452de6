import type { ServerResponse } from "node:http";
import { afterAll, describe, expect, test } from "vitest";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";
import { at, completed, created, event, least, ofResponses, said, words } from "./output-places.ts";

// Output in any place that an upstream may put it, without usage: a caller of Messages pays for it as any other caller does.

ownWorldOnly();
const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());

const ask = {
  ...{ max_tokens: 900, messages: [{ role: "user", content: "Hi" }] },
  thinking: { type: "adaptive" },
};

const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
const ofChat: Record<string, string[]> = {
  content: [chunk({ content: words })],
  "content in parts": [chunk({ content: [{ type: "text", text: words }] })],
  reasoning_content: [chunk({ reasoning_content: words })],
  reasoning: [chunk({ reasoning: words })],
  details: [chunk({ reasoning_details: [{ type: "reasoning.text", text: words }] })],
  refusal: [chunk({ refusal: words })],
  arguments: [chunk({ tool_calls: [{ index: 0, function: { name: "f", arguments: words } }] })],
  "a call's name": [chunk({ tool_calls: [{ index: 0, function: { name: words } }] })],
  "an unknown field": [chunk({ other: words })],
};

function play(parts: readonly string[]): void {
  world.play({
    kind: "custom",
    async handle(_seen: unknown, answer: ServerResponse) {
      answer.writeHead(200, { "content-type": "text/event-stream" });
      answer.end(parts.join(""));
    },
  });
}

async function spentFor(model: string, stream: boolean): Promise<number> {
  const caller = await world.caller();
  const body = { ...ask, model };
  if (stream) await caller.stream("/messages", body);
  else expect((await caller.post("/messages", body)).status).toBe(200);
  return (await caller.settled()).monthSpend;
}

describe.for([true, false])("streamed to its caller: %s", (stream) => {
  test.for(Object.entries(ofResponses))("responses, %s", async ([, parts]) => {
    play([created, ...parts, completed()]);
    expect(await spentFor("scripted", stream)).toBeGreaterThanOrEqual(least);
  });
  test("responses, the last event alone", async () => {
    play([created, completed({ output: [said(words)] })]);
    expect(await spentFor("scripted", stream)).toBeGreaterThanOrEqual(least);
  });
  test.for(Object.entries(ofChat))("chat, %s", async ([, parts]) => {
    play([...parts, chunk({}, "stop"), "data: [DONE]\n\n"]);
    expect(await spentFor("legacy", stream)).toBeGreaterThanOrEqual(least);
  });
});

test.for(["scripted", "legacy"])("text behind a stop sequence is paid for: %s", async (model) => {
  const text = `END ${words}`;
  play(
    model === "scripted"
      ? [created, event("response.output_text.delta", { ...at, delta: text }), completed()]
      : [chunk({ content: text }), chunk({}, "stop"), "data: [DONE]\n\n"],
  );
  const caller = await world.caller();
  const body = { ...ask, model, stop_sequences: ["END"] };
  const events = await caller.stream("/messages", body);
  expect(events.at(-2)?.json.delta.stop_reason).toBe("stop_sequence");
  expect((await caller.settled()).monthSpend).toBeGreaterThanOrEqual(least);
});

test.for(["scripted", "legacy"])("a bound that is ignored cuts the answer: %s", async (model) => {
  const caller = await world.caller();
  const parts = Array(300).fill("sea ");
  play(
    model === "scripted"
      ? [created, ...parts.map((delta) => event("response.output_text.delta", { ...at, delta }))]
      : parts.map((content) => chunk({ content })),
  );
  const events = await caller.stream("/messages", { ...ask, model, max_tokens: 100 });
  expect(events.at(-2)?.json.delta.stop_reason).toBe("max_tokens");
  const text = events.map(({ json }) => json.delta?.text ?? "").join("");
  expect(text.split(" ").length).toBeLessThan(300);
});
