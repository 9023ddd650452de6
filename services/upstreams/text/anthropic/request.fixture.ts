// Requests in the form of Messages, for tests of the translation to Anthropic.

import { expect } from "vitest";
import { inTurns } from "#kit/base/in-turns.ts";
import type { JsonObject, JsonValue } from "#kit/base/json.ts";
import { usualBetas } from "../../anthropic/capabilities.ts";
import { type MessagesOptions, type MessagesRequest, toMessages } from "./request.ts";
import { Untranslatable } from "./untranslatable.ts";

export const usual: MessagesOptions = { betas: usualBetas, passParameters: [], dropsBlocks: true };
export const made = (asked: JsonObject, options: Partial<MessagesOptions> = {}): MessagesRequest =>
  inTurns(toMessages({ input: "Hi", ...asked }, { ...usual, ...options })) as MessagesRequest;
export const bodyOf = (asked: JsonObject, options?: Partial<MessagesOptions>) =>
  made(asked, options).body;
export const faultOf = (asked: JsonObject, options?: Partial<MessagesOptions>) => {
  try {
    made(asked, options);
  } catch (error) {
    if (error instanceof Untranslatable) return `${error.kind} ${error.param}`;
    throw error;
  }
  return expect.unreachable("it was translated");
};

export const user = (text: string): JsonObject => ({
  role: "user",
  content: [{ type: "text", text }],
});
export const call = (id: string, fields: JsonObject = {}): JsonObject => ({
  ...{ type: "function_call", call_id: id, name: "look", arguments: "{}" },
  ...fields,
});
export const result = (id: string, output: JsonValue): JsonObject => ({
  ...{ type: "function_call_output", call_id: id, output },
});
export const toolUse = (id: string, input: JsonObject = {}): JsonObject => ({
  ...{ type: "tool_use", id, name: "look", input },
});
export const toolResult = (id: string, content: JsonValue) => ({
  ...{ type: "tool_result", tool_use_id: id, content },
});
export const lookThere = { name: "look", input_schema: { type: "object" } };
