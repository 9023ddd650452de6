import { expect, test } from "vitest";
import { chatUsageOf, completeUsage, usageOfChat, usageOfResponse } from "./usage.ts";

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
  expect(read("12", 2)?.inputTokens).toBeNaN();
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
