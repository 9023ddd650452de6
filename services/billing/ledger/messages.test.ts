import { expect, test } from "vitest";
import { recordText } from "./messages.ts";

test("the form of a record is fixed: each fact has its place, and what is absent is empty", () => {
  const all = {
    ...{ model: "m", operation: "transcriptions", status: "completed", streamed: true },
    ...{ estimated: true, upstream: "u", inputTokens: 3, cachedInputTokens: 2, outputTokens: 9 },
    ...{ reasoningTokens: 4, startMs: 5, firstOutputMs: 1_001, endMs: 1_767_225_600_123 },
    ...{ characters: 7, images: 1, mediaMs: 8, answerId: "a", requestId: "r" },
    finishReason: "stop",
    failure: { code: "model_request_failed", upstreamKind: "denied", upstreamStatus: 401 },
    failedTries: [
      { lane: "u#2", kind: "rate_limited", status: 429 },
      { lane: "v", kind: "full" },
    ],
  };
  expect(recordText(all)).toMatchInlineSnapshot(
    `"{"model":"m","operation":"transcriptions","status":"completed","streamed":true,"estimated":true,"upstream":"u","inputTokens":3,"cachedInputTokens":2,"outputTokens":9,"reasoningTokens":4,"startMs":5,"firstOutputMs":1001,"endMs":1767225600123,"characters":7,"images":1,"mediaMs":8,"answerId":"a","requestId":"r","finishReason":"stop","failure":{"code":"model_request_failed","upstreamKind":"denied","upstreamStatus":401},"failedTries":[{"lane":"u#2","kind":"rate_limited","status":429},{"lane":"v","kind":"full"}]}"`,
  );
  expect(recordText({})).toMatchInlineSnapshot(
    `"{"model":"","operation":"","status":"","streamed":false,"estimated":false,"upstream":"","inputTokens":0,"cachedInputTokens":0,"outputTokens":0,"reasoningTokens":0}"`,
  );
});
