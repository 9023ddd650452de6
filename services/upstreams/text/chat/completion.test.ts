import { expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { UpstreamFailure } from "../failure.ts";
import { readResponse } from "../responses/json-answer.ts";
import { toCompletion } from "./completion.ts";
import { readCompletion } from "./native-json.ts";

const facts = {
  modelId: "chat-1",
  callerInstructions: null,
  body: {},
  nowS: () => 1000,
  id: "resp_ours",
  newId: (prefix: string) => `${prefix}_made`,
};
const chatFacts = { id: "chatcmpl-1", modelId: "chat-1", nowS: () => 1000, withUsage: false };

const text = (words: string, more: JsonObject = {}) => ({
  type: "message",
  id: "m",
  role: "assistant",
  content: [{ type: "output_text", text: words, ...more }],
});
const call = { type: "function_call", id: "f", call_id: "c1", name: "g", arguments: "{}" };

function completionOf(response: JsonObject) {
  return toCompletion(
    readResponse({ created_at: 5, status: "completed", ...response }, facts),
    "chatcmpl-1",
  );
}

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape.
const choiceOf = (response: JsonObject): any =>
  (completionOf(response).object.choices as JsonObject[])[0];

test("text, usage and head", () => {
  const usage = {
    input_tokens: 10,
    output_tokens: 4,
    total_tokens: 14,
    input_tokens_details: { cached_tokens: 6 },
    output_tokens_details: { reasoning_tokens: 2 },
  };
  const answer = completionOf({ output: [text("Hel"), text("lo")], usage });
  expect(answer.object).toEqual({
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 5,
    model: "chat-1",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: "Hello", refusal: null, annotations: [] },
        logprobs: null,
        finish_reason: "stop",
      },
    ],
    usage: {
      prompt_tokens: 10,
      completion_tokens: 4,
      total_tokens: 14,
      prompt_tokens_details: { cached_tokens: 6 },
      completion_tokens_details: { reasoning_tokens: 2 },
    },
    service_tier: "default",
    system_fingerprint: null,
  });
  expect(answer).toMatchObject({
    ending: "completed",
    outputText: "Hello",
    usage: { inputTokens: 10, cachedInputTokens: 6, outputTokens: 4 },
  });
});

test("finish reasons, calls, refusals, citations, logprobs", () => {
  expect(choiceOf({ output: [call] })).toMatchObject({
    message: {
      content: null,
      tool_calls: [{ id: "c1", type: "function", function: { name: "g", arguments: "{}" } }],
    },
    finish_reason: "tool_calls",
  });
  const incomplete = (reason: string) =>
    choiceOf({ status: "incomplete", incomplete_details: { reason }, output: [text("a")] });
  expect(incomplete("max_output_tokens").finish_reason).toBe("length");
  expect(incomplete("content_filter").finish_reason).toBe("content_filter");
  const refusal = { ...text(""), content: [{ type: "refusal", refusal: "no" }] };
  expect(choiceOf({ output: [refusal] }).message).toMatchObject({ content: null, refusal: "no" });
  const citation = { type: "url_citation", url: "https://a.example", title: "t" };
  const logprob = { token: "a", logprob: -1, bytes: [97], top_logprobs: [] };
  const rich = choiceOf({ output: [text("a", { annotations: [citation], logprobs: [logprob] })] });
  const { type, ...cited } = citation;
  expect(rich.message.annotations).toEqual([{ type, url_citation: cited }]);
  expect(rich.logprobs).toEqual({ content: [logprob], refusal: null });
});

test("a failed response is no completion: it stays what it is, with its usage and our words", () => {
  const usage = { input_tokens: 3, output_tokens: 2, total_tokens: 5 };
  const failed = (code: string) =>
    completionOf({ status: "failed", output: [], usage, error: { code, message: "SECRET" } });
  expect(failed("server_error")).toMatchObject({
    ending: "failed",
    failure: ErrorReason.MODEL_REQUEST_FAILED,
    usage: { inputTokens: 3, outputTokens: 2 },
  });
  expect(failed("content_filter").failure).toBe(ErrorReason.CONTENT_POLICY_VIOLATION);
  expect(JSON.stringify(failed("server_error"))).not.toContain("SECRET");
});

test("an upstream's own completion shows our id and model, and is whole", () => {
  const answer = readCompletion(
    {
      id: "up",
      model: "up-model",
      choices: [{ message: { content: "Hi", reasoning_content: "hm " }, finish_reason: "length" }],
      usage: { prompt_tokens: 3, completion_tokens: 2 },
      novel: 1,
    },
    chatFacts,
  );
  expect(answer.object).toMatchObject({
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1000,
    model: "chat-1",
    choices: [{ index: 0, message: { role: "assistant", content: "Hi", refusal: null } }],
  });
  expect(answer.object).not.toHaveProperty("novel");
  expect(answer).toMatchObject({
    ending: "incomplete",
    outputText: "Hihm ",
    usage: { inputTokens: 3, cachedInputTokens: 0, outputTokens: 2 },
  });
  expect(() => readCompletion({ choices: [] }, chatFacts)).toThrow(UpstreamFailure);
});

test("an upstream's own completion that broke off is a failure in our words, with its usage", () => {
  const broken = (code: string | number) =>
    readCompletion(
      {
        choices: [{ message: { content: "He" }, finish_reason: "error", error: { code } }],
        usage: { prompt_tokens: 3, completion_tokens: 1 },
        debug: { messages: ["SECRET"] },
      },
      chatFacts,
    );
  expect(broken(502)).toMatchObject({
    ending: "failed",
    failure: ErrorReason.MODEL_REQUEST_FAILED,
    usage: { inputTokens: 3, outputTokens: 1 },
  });
  expect(broken("content_filter").failure).toBe(ErrorReason.CONTENT_POLICY_VIOLATION);
  expect(JSON.stringify(broken(502))).not.toContain("SECRET");
});
