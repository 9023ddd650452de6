import { expect, test } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import { longestTurn } from "../../../../test/support/longest-turn.ts";
import { ChunkCollector } from "./chunk-collector.ts";

function collected(deltas: readonly JsonObject[]) {
  const collector = new ChunkCollector();
  for (const delta of deltas) collector.add({ choices: [{ index: 0, delta }] });
  collector.add({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
  const { choices } = collector.completion(undefined) ?? {};
  return (choices as { message: JsonObject }[])[0]?.message;
}

const text = (text: string, index: number) => ({ type: "reasoning.text", text, index });

test("entries go on by index and type, and what is sealed stays one", () => {
  const seal = (data: string) => ({ type: "reasoning.encrypted", data, index: 0 });
  const details = [
    [text("a", 0), seal("x")],
    [seal("y"), { type: "reasoning.summary", summary: "s", index: 0 }],
    [text("b", 0), text("c", 1)],
    [{ index: 0, signature: "t" }],
    [text("d", 1)],
  ];
  const message = collected(details.map((reasoning_details) => ({ reasoning_details })));
  expect(message?.reasoning_details).toEqual([
    { ...text("ab", 0), signature: "t" },
    ...[seal("x"), seal("y"), { type: "reasoning.summary", summary: "s", index: 0 }],
    text("cd", 1),
  ]);
});

test("as many entries as an event has room for are put together at once", async () => {
  const many = Array.from({ length: 40_000 }, (_, index) => text("a", index));
  let message: JsonObject | undefined;
  const kept = await longestTurn(async () => {
    message = collected([{ reasoning_details: many }, { reasoning_details: many }]);
  });
  expect(message?.reasoning_details).toEqual(many.map((_, index) => text("aa", index)));
  // A search through the whole list for each piece takes 20 s.
  expect(kept).toBeLessThan(3_000);
});
