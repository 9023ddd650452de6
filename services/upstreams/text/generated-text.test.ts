import { describe, expect, test } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import { cutAnswer, textOfAnswer, textOfCompacted, textOfDeltaEvent } from "./generated-text.ts";
import { unseenOf } from "./judging/hidden-output.ts";

const said = "All of this was generated.";

describe("every text counts, in any field, and can be cut", () => {
  const choices: [name: string, choice: JsonObject][] = [
    ["what a sound says", { delta: { audio: { id: "a", data: "QUJD", transcript: said } } }],
    ["text beside an empty delta", { delta: {}, text: said }],
    ["text without a delta", { text: said }],
    ["content beside a message", { message: { role: "assistant", content: "" }, content: said }],
  ];
  test.for(choices)("of a choice: %s", ([, choice]) => {
    const answer = { choices: [{ index: 0, finish_reason: null, ...choice }] };
    expect(textOfAnswer(answer)).toBe(said);
    expect(textOfAnswer(cutAnswer(answer, 6))).toBe("All of");
  });

  const seal = "c2VhbGVk".repeat(50);
  const google = { extra_content: { google: { thought_signature: seal } } };
  const sealed: [name: string, said: JsonObject][] = [
    ["beside a text", google],
    [
      "beside a call",
      { tool_calls: [{ index: 0, ...google, function: { thought_signature: "" } }] },
    ],
    ["of a function", { tool_calls: [{ index: 0, function: { thought_signature: seal } }] }],
    ["of a detail", { reasoning_details: [{ type: "reasoning.text", signature: seal }] }],
    ["in a detail", { reasoning_details: [{ type: "reasoning.encrypted", data: seal }] }],
  ];
  test.for(sealed)("but what only upstream reads: %s", ([, delta]) => {
    const answer = { choices: [{ index: 0, finish_reason: null, delta }] };
    expect(textOfAnswer(answer)).toBe("");
    expect(unseenOf(answer).sealedCharacters).toBe(seal.length);
    // Sealed state is useless when it is cut.
    expect(cutAnswer(answer, 6)).toEqual(answer);
  });

  const parsed = { city: "Bergen", days: [1, 2, 3] };
  test("arguments that a server has parsed", () => {
    const call = { index: 0, function: { arguments: parsed } };
    const answer = { choices: [{ index: 0, delta: { tool_calls: [call] } }] };
    expect(textOfAnswer(answer)).toBe(JSON.stringify(parsed));
    expect(textOfAnswer(cutAnswer(answer, 6))).toBe('{"city');
    const item = { type: "function_call", name: "", arguments: parsed };
    expect(textOfAnswer({ output: [item] })).toBe(JSON.stringify(parsed));
  });

  const events: [name: string, event: JsonObject][] = [
    ["text in place of a delta", { type: "response.output_text.delta", text: said }],
    ["a delta that is an object", { type: "response.output_text.delta", delta: { text: said } }],
    ["a field of its own", { type: "response.novel.delta", anything: [said] }],
  ];
  test.for(events)("of an event: %s", ([, event]) => {
    expect(textOfDeltaEvent(event)).toBe(said);
    expect(textOfAnswer(cutAnswer(event, 6))).toBe("All of");
  });

  test("of an item of any role", () => {
    const item = { type: "message", role: "model", content: [{ type: "output_text", text: said }] };
    expect(textOfAnswer({ output: [item] })).toBe(said);
    expect(textOfCompacted([item, { ...item, role: "user" }])).toBe(said);
  });

  test("of what stands in the place of an item", () => {
    for (const output of [[said], [[said]], [null, [{ type: "message", content: said }]]]) {
      expect(textOfCompacted(output)).toBe(said);
      const compaction = { object: "response.compaction", output };
      expect(textOfAnswer(cutAnswer(compaction, 6))).toBe("All of");
    }
  });
});

describe("what does not count", () => {
  test("what a server has said so far, beside its delta", () => {
    const event = { type: "response.output_text.delta", delta: " it", text: "So far, it" };
    expect(textOfDeltaEvent(event)).toBe(" it");
    const delta = { content: " it" };
    expect(textOfAnswer({ choices: [{ index: 0, delta, text: "So far, it" }] })).toBe(" it");
  });

  test("sound, padding, and names", () => {
    expect(textOfDeltaEvent({ type: "response.audio.delta", delta: "QUJD" })).toBe("");
    const event = { type: "response.novel.delta", item_id: "m", obfuscation: "xyz", delta: "" };
    expect(textOfDeltaEvent(event)).toBe("");
  });
});
