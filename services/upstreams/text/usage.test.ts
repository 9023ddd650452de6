import { expect, test } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import { chatUsageOf, completeUsage, usageIn, usageOfChat, usageOfResponse } from "./usage.ts";

test("what was reported is read as it is, believable or not", () => {
  const read = (input: unknown, output: unknown, cached?: unknown) =>
    usageOfResponse({
      input_tokens: input as number,
      output_tokens: output as number,
      input_tokens_details: { cached_tokens: cached as number },
    });
  expect(read(3, 2, 1)).toEqual({ inputTokens: 3, cachedInputTokens: 1, outputTokens: 2 });
  expect(read(0, 0)).toEqual({ inputTokens: 0, cachedInputTokens: 0, outputTokens: 0 });
  expect(read(-5, 1e300, 50)).toEqual({
    inputTokens: -5,
    cachedInputTokens: 50,
    outputTokens: 1e300,
  });
  expect(read("twelve", 2)?.inputTokens).toBeNaN();
  expect(read("1.5", 2)?.inputTokens).toBeNaN();
});

test("numbers that were written as text, and parts that the total tells, are numbers", () => {
  const whole = { inputTokens: 10, cachedInputTokens: 0, outputTokens: 5_000 };
  const reports: JsonObject[] = [
    { prompt_tokens: "10", completion_tokens: "5000", total_tokens: "5010" },
    { prompt_tokens: 10, completion_tokens: "5000" },
    { prompt_tokens: 10, total_tokens: 5_010 },
    { completion_tokens: 5_000, total_tokens: 5_010 },
    { prompt_tokens: 10, completion_tokens: null, total_tokens: 5_010 },
  ];
  for (const usage of reports) expect(usageOfChat(usage)).toEqual(whole);
  expect(usageOfChat({ prompt_tokens: 10, total_tokens: 5 })).toBeUndefined();
  // A total that equals one part says nothing of the other part.
  expect(usageOfChat({ prompt_tokens: 10, total_tokens: 10 })).toBeUndefined();
  expect(usageOfChat({ completion_tokens: 5_000, total_tokens: 5_000 })).toBeUndefined();
});

test("reasoning beside the output counts where servers put it", () => {
  const usage = { prompt_tokens: 10, completion_tokens: 3 };
  const flat = { ...usage, reasoning_tokens: 5_000 };
  const text = { ...usage, completion_tokens_details: { reasoning_tokens: "5000" } };
  for (const found of [flat, text]) expect(usageOfChat(found)?.outputTokens).toBe(5_003);
});

test("usage is found in what a choice says, and under either of two names", () => {
  const usage = { prompt_tokens: 10, completion_tokens: 5_000 };
  const zeros = { input_tokens: 0, output_tokens: 0 };
  const answers: JsonObject[] = [
    { choices: [{ delta: { usage } }] },
    { choices: [{ message: { usage } }] },
    { usage: { ...zeros, ...usage } },
  ];
  for (const answer of answers) expect(usageIn(answer)?.usage.outputTokens).toBe(5_000);
});

test("nothing, or half, is not reported", () => {
  for (const usage of [undefined, null, {}, "x", [], { input_tokens: 1 }, { output_tokens: 1 }]) {
    expect(usageOfResponse(usage as never)).toBeUndefined();
  }
  expect(usageOfChat({ prompt_tokens: 1, completion_tokens: 2 })).toEqual({
    inputTokens: 1,
    cachedInputTokens: 0,
    outputTokens: 2,
  });
});

test("usage objects are completed and translated, and show tokens alone", () => {
  expect(completeUsage({ input_tokens: 3, output_tokens: 2, cost: 1 })).toEqual({
    input_tokens: 3,
    output_tokens: 2,
    total_tokens: 5,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens_details: { reasoning_tokens: 0 },
  });
  expect(completeUsage(undefined)).toBeNull();
  expect(chatUsageOf(null)).toBeUndefined();
});
