import { describe, expect, test } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import { nothingUnseen, unseenOf } from "../judging/hidden-output.ts";
import { bareText } from "./bare-output.ts";
import { readResponse } from "./json-answer.ts";

const part = (text: string, more: JsonObject = {}): JsonObject => {
  return { type: "output_text", text, annotations: [], logprobs: [], ...more };
};
const message = (content: JsonObject[], more: JsonObject = {}): JsonObject => {
  return { type: "message", id: "m", role: "assistant", status: "completed", content, ...more };
};
const facts = {
  ...{ id: "resp_1", modelId: "chat-1", callerInstructions: null, body: {}, nowS: () => 1_000 },
  newId: (prefix: string) => `${prefix}_made`,
};
const answer = (output: JsonObject[], more: JsonObject = {}): JsonObject => {
  return { created_at: 5, status: "completed", output, ...more };
};

describe("an answer of bare text", () => {
  test.each([
    ["one message", [message([part("It is mild.")])]],
    ["several messages and parts", [message([part("a"), part("")]), message([part("b")])]],
    ["no output", []],
  ])("is read as by the whole search: %s", (_, output) => {
    const found = answer(output);
    const bare = bareText(found);
    expect(bare).toBeDefined();
    expect(readResponse(found, facts, bare)).toEqual(readResponse(found, facts));
    expect(unseenOf(found)).toEqual(nothingUnseen);
  });

  test.each([
    ["reasoning", [{ type: "reasoning", id: "r", summary: [] }, message([part("a")])]],
    ["a call", [{ type: "function_call", id: "f", call_id: "c", name: "g", arguments: "{}" }]],
    ["a field of another name", [message([part("a")], { encrypted_content: "x" })]],
    ["a part with a field of another name", [message([part("a", { signature: "x" })])]],
    ["a part with an annotation", [message([part("a", { annotations: [{ type: "x" }] })])]],
    ["a refusal", [message([{ type: "refusal", refusal: "no" }])]],
    ["a missing id", [message([part("a")], { id: "" })]],
    ["a missing status", [message([part("a")], { status: null })]],
  ])("is none with %s", (_, output) => {
    expect(bareText(answer(output))).toBeUndefined();
  });

  test("is none where text stands elsewhere as well", () => {
    const output = [message([part("a")])];
    expect(bareText(answer(output, { choices: [] }))).toBeUndefined();
    expect(bareText(answer(output, { content: [] }))).toBeUndefined();
    expect(bareText({ status: "completed" })).toBeUndefined();
  });
});
