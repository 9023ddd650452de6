import { expect, test } from "vitest";
import { ErrorReason, errorRow } from "#kit/base/errors.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import { failureOf, failureOfStatus, refusalOf, UpstreamFailure } from "./failure.ts";

const sent = { model: "m", input: "x", temperature: 3, instructions: "SECRET" };

test.each([
  [400, {}, "invalid_value", 400, false],
  [422, {}, "invalid_value", 400, false],
  [400, { code: "content_policy_violation" }, "content_policy_violation", 400, false],
  [403, { type: "content_filter" }, "content_policy_violation", 400, false],
  // Words of other upstreams that media knew and text did not.
  [400, { code: "ResponsibleAIPolicyViolation" }, "content_policy_violation", 400, false],
  [400, { code: "input_moderation" }, "content_policy_violation", 400, false],
  [400, { code: "context_length_exceeded" }, "context_length_exceeded", 400, false],
  [400, { type: "exceed_context_size_error" }, "context_length_exceeded", 400, false],
  [422, { message: "UPSTREAM maximum context length" }, "context_length_exceeded", 400, false],
  [401, {}, "model_request_failed", 502, false],
  [402, {}, "model_request_failed", 502, false],
  [403, {}, "model_request_failed", 502, false],
  [404, {}, "model_request_failed", 502, false],
  [302, {}, "model_request_failed", 502, false],
  [429, {}, "model_request_failed", 502, true],
  [429, { code: "insufficient_quota" }, "model_request_failed", 502, true],
  [500, {}, "model_request_failed", 502, true],
  [503, { code: "content_filter" }, "model_request_failed", 502, true],
] as const)("%i %j is our %s", (status, error, code, ours, mayFallBack) => {
  const message = "UPSTREAM WORDS";
  const failure = failureOfStatus(status, { message, ...error }, sent);
  expect(failure.mayFallBack).toBe(mayFallBack);
  const refusal = refusalOf(failure, "chat-1");
  const row = errorRow(refusal.reason);
  expect([row.code, row.status]).toEqual([code, ours]);
  expect(refusal.message).not.toContain("UPSTREAM");
});

test("a field is named only where the caller sent it and we did not replace it", () => {
  const paramOf = (param: unknown) =>
    refusalOf(failureOfStatus(400, { param: param as string }, sent), "chat-1").param;
  expect(paramOf("temperature")).toBe("temperature");
  expect(paramOf("input[3].content")).toBe("input");
  expect(paramOf("instructions")).toBeUndefined();
  expect(paramOf("model")).toBeUndefined();
  expect(paramOf("top_p")).toBeUndefined();
  expect(paramOf("SECRET words")).toBeUndefined();
  expect(paramOf(7)).toBeUndefined();
});

test.each([
  [new UpstreamError("unreachable"), "MODEL_REQUEST_FAILED", true],
  [new UpstreamError("unreachable", { timedOut: true }), "UPSTREAM_TIMEOUT", true],
  [new UpstreamError("full"), "SERVICE_UNAVAILABLE", true],
  [new UpstreamError("timeout"), "UPSTREAM_TIMEOUT", false],
  [new UpstreamError("cut"), "MODEL_REQUEST_FAILED", true],
  [new UpstreamError("too_large"), "MODEL_REQUEST_FAILED", false],
  [new UpstreamFailure("garbage"), "MODEL_REQUEST_FAILED", false],
  [new UpstreamFailure("misconfigured"), "MODEL_REQUEST_FAILED", false],
  [new UpstreamFailure("incapable"), "MODEL_NOT_RESPONSES_CAPABLE", false],
] as const)("%s", (error, reason, mayFallBack) => {
  const failure = failureOf(error);
  expect(failure?.mayFallBack).toBe(mayFallBack);
  if (failure) expect(refusalOf(failure, "chat-1").reason).toBe(ErrorReason[reason]);
});

test("a fault of our own is no failure of upstream's", () => {
  expect(failureOf(new TypeError("oops"))).toBeUndefined();
});
