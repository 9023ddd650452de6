import { describe, expect, test } from "vitest";
import { ErrorReason, errorRow } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import type { Outcome } from "../pools/outcomes.ts";
import {
  failureOf,
  failureOfError,
  failureOfStatus,
  refusalOf,
  UpstreamFailure,
} from "./failure.ts";

const sent = { model: "m", input: "x", temperature: 3, instructions: "SECRET" };

test.each([
  [400, {}, "invalid_value", 400, "refused"],
  [422, {}, "invalid_value", 400, "refused"],
  [400, { code: "content_policy_violation" }, "content_policy_violation", 400, "refused"],
  [403, { type: "content_filter" }, "content_policy_violation", 400, "refused"],
  // Words of other upstreams that media knew and text did not.
  [400, { code: "ResponsibleAIPolicyViolation" }, "content_policy_violation", 400, "refused"],
  [400, { code: "input_moderation" }, "content_policy_violation", 400, "refused"],
  [400, { code: "context_length_exceeded" }, "context_length_exceeded", 400, "refused"],
  [400, { type: "exceed_context_size_error" }, "context_length_exceeded", 400, "refused"],
  [422, { message: "UPSTREAM maximum context length" }, "context_length_exceeded", 400, "refused"],
  [401, {}, "model_request_failed", 502, "key_refused"],
  [402, {}, "model_request_failed", 502, "account_empty"],
  [403, {}, "model_request_failed", 502, "key_refused"],
  [404, {}, "model_request_failed", 502, "open"],
  [302, {}, "model_request_failed", 502, "open"],
  [405, {}, "model_request_failed", 502, "open"],
  [429, {}, "model_request_failed", 502, "limited"],
  [429, { code: "insufficient_quota" }, "model_request_failed", 502, "account_empty"],
  [500, {}, "model_request_failed", 502, "failed"],
  [502, {}, "model_request_failed", 502, "failed"],
  [503, { code: "content_filter" }, "model_request_failed", 502, "failed"],
  [504, {}, "model_request_failed", 502, "failed"],
  [529, { type: "overloaded_error" }, "model_request_failed", 502, "limited"],
] as const)("%i %j is our %s", (status, error, code, ours, outcome) => {
  const message = "UPSTREAM WORDS";
  const failure = failureOfStatus(status, { message, ...error }, sent);
  expect(failure.outcome).toBe(outcome);
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
  [new UpstreamError("unreachable"), "MODEL_REQUEST_FAILED", "failed"],
  [new UpstreamError("unreachable", { timedOut: true }), "UPSTREAM_TIMEOUT", "failed"],
  [new UpstreamError("full"), "SERVICE_UNAVAILABLE", "full"],
  [new UpstreamError("timeout"), "UPSTREAM_TIMEOUT", "perhaps_paid"],
  [new UpstreamError("cut"), "MODEL_REQUEST_FAILED", "failed"],
  [new UpstreamError("too_large"), "MODEL_REQUEST_FAILED", "open"],
  [new UpstreamFailure("garbage"), "MODEL_REQUEST_FAILED", "failed"],
  [new UpstreamFailure("misconfigured"), "MODEL_REQUEST_FAILED", "key_refused"],
  [new UpstreamFailure("incapable"), "MODEL_NOT_RESPONSES_CAPABLE", "open"],
] as const)("%s", (error, reason, outcome) => {
  const failure = failureOf(error);
  expect(failure?.outcome).toBe(outcome);
  if (failure) expect(refusalOf(failure, "chat-1").reason).toBe(ErrorReason[reason]);
});

test("a fault of our own is no failure of upstream's", () => {
  expect(failureOf(new TypeError("oops"))).toBeUndefined();
});

test("a failure with usage may be paid for, whatever it is", () => {
  const failure = new UpstreamFailure("server_error", { status: 500 });
  failure.usage = { inputTokens: 1, cachedInputTokens: 0, outputTokens: 0 };
  expect(failure.outcome).toBe("perhaps_paid");
});

describe("an upstream's own words say what its lane lacks", () => {
  const credit = "Your credit balance is too low to access the API. Please go to Plans & Billing";
  const limit = "You have reached your specified API usage limits. You will regain access on";
  const tooLarge = "Request too large for m on tokens per min (TPM): Limit 30000, Requested 30601";
  const fewer =
    "This request requires more credits, or fewer max_tokens. You requested up to 16384 tokens, but can only afford";
  test.each<[number, JsonObject, Outcome]>([
    // Money.
    [400, { type: "invalid_request_error", message: credit }, "account_empty"],
    [400, { type: "invalid_request_error", message: limit }, "account_empty"],
    [403, { detail: "User is locked. Reason: Exhausted balance. Top up" }, "account_empty"],
    [403, { message: "Exhausted balance" }, "account_empty"],
    [400, { message: `Invalid value: '${credit}'` }, "refused"],
    [400, { message: `'${limit}' is no tool` }, "refused"],
    // The key.
    [403, { type: "permission_error" }, "key_refused"],
    [400, { code: "invalid_api_key" }, "key_refused"],
    [401, { type: "authentication_error" }, "key_refused"],
    // The model.
    [404, { code: "model_not_found" }, "model_missing"],
    [403, { code: "model_not_found" }, "model_missing"],
    [404, { message: "The model `m` does not exist." }, "model_missing"],
    [404, { type: "not_found_error", message: "model: m" }, "model_missing"],
    [404, { error: "model 'm' not found" }, "model_missing"],
    [404, { message: "models/m is not found for API version v1beta" }, "model_missing"],
    [404, { message: "No endpoints found for m." }, "model_missing"],
    // The caller's own names may be of any form.
    [404, { message: "Item with id 'model' not found.", param: "input" }, "open"],
    [404, { message: "Vector store with id [model] not found." }, "open"],
    [404, { code: 404, message: "No endpoints found that support image input" }, "open"],
    [404, { message: "No endpoints found that support tool use." }, "open"],
    [400, { code: "model_not_found", param: "tools[0].model" }, "refused"],
    [404, { message: "The model `x` does not exist.", param: "tools[0].model" }, "open"],
    // One request that is too large.
    [429, { code: "rate_limit_exceeded", message: tooLarge }, "over_limit"],
    [402, { code: 402, message: `${fewer} 3919. To increase` }, "over_limit"],
    [402, { code: 402, message: `${fewer} 0. To increase` }, "account_empty"],
    // The region.
    [403, { code: "unsupported_country_region_territory" }, "region_refused"],
    [403, { message: "Access is not allowed from unsupported countries." }, "region_refused"],
    [400, { message: "User location is not supported for the API use." }, "region_refused"],
    [400, { message: "Invalid value: 'User location is not supported'" }, "refused"],
    // The content, and not the key.
    [403, { message: "Your prompt was flagged by our safety system." }, "open"],
    [403, { code: "content_not_allowed" }, "open"],
    [
      403,
      { message: `You have insufficient permissions. ${"x".repeat(200)} content` },
      "key_refused",
    ],
    [403, { code: "permission-denied", error: "Content violates usage guidelines." }, "refused"],
    [403, { code: 403, metadata: { reasons: ["violence"], flagged_input: "x" } }, "refused"],
  ])("%i %j: %s", (status, error, outcome) => {
    expect(failureOfStatus(status, error, sent).outcome).toBe(outcome);
  });

  test("a page that is no JSON tells of a path that is not there, and of no key", () => {
    expect(failureOfStatus(404, {}, sent).outcome).toBe("model_missing");
    expect(failureOfStatus(403, {}, sent).outcome).toBe("open");
    expect(failureOfStatus(401, {}, sent).outcome).toBe("key_refused");
  });

  test.each<[JsonObject, Outcome]>([
    [{ code: 429 }, "limited"],
    [{ code: "529" }, "limited"],
    [{ type: "overloaded_error" }, "limited"],
    [{ type: "rate_limit_error" }, "limited"],
    [{ code: "insufficient_quota" }, "account_empty"],
    [{ code: 402 }, "account_empty"],
    [{ code: 401 }, "key_refused"],
    [{ code: 404, message: "model 'm' not found" }, "model_missing"],
    [{ code: 502 }, "failed"],
    [{ type: "server_error" }, "failed"],
    [{ message: "oops" }, "failed"],
    [{ code: 400 }, "open"],
    [{ type: "invalid_request_error", code: "unknown_value" }, "refused"],
    [{ code: "invalid_prompt", message: "Invalid prompt" }, "refused"],
    [{ code: "content_filter" }, "refused"],
    [{ code: 403, metadata: { reasons: ["violence"] } }, "refused"],
    [{ code: "context_length_exceeded" }, "refused"],
  ])("inside a 200, %j: %s", (error, outcome) => {
    expect(failureOfError(error).outcome).toBe(outcome);
  });
});
