import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { allReasons, errorRow, RefusalError, reasonName } from "#kit/base/errors.ts";
import { ErrorReasonSchema } from "#proto/genmesh/common/v1/error_reason_pb.ts";
import { toHttpError } from "../gateway/errors.ts";
import { errorsPage, errorsPageFile } from "../gateway/errors-page.ts";

/** The specification's codes. Three of them have a status of their own, and the others are 400. */
const specified = [
  "invalid_api_key",
  "model_not_found",
  "unsupported_content_type",
  "model_not_responses_capable",
  "unsupported_parameter",
  "invalid_image",
  "image_limit_exceeded",
  "model_request_failed",
  "unsupported_size",
  "invalid_input_reference",
  "unsafe_reference_url",
  "invalid_reference_image",
  "insufficient_credits",
];
const elsewhere = ["invalid_api_key", "insufficient_credits", "model_request_failed"];

/** The contract's table: status, type, codes. */
const table: [status: number, type: string, codes: string[]][] = [
  [
    400,
    "invalid_request_error",
    [
      ...specified.filter((code) => !elsewhere.includes(code)),
      "invalid_json",
      "missing_required_parameter",
      "invalid_type",
      "invalid_value",
      "image_too_large",
      "context_length_exceeded",
      "unsupported_duration",
      "unsupported_resolution",
      "unsupported_aspect_ratio",
      "unsupported_mode",
      "too_many_references",
      "reference_not_found",
      "upload_quota_exceeded",
      "unsupported_voice",
      "unsupported_language",
      "content_policy_violation",
      "invalid_idempotency_key",
      "previous_response_not_found",
      "invalid_stream_id",
      "websocket_connection_limit_reached",
    ],
  ],
  [401, "authentication_error", ["invalid_api_key"]],
  [402, "insufficient_quota", ["insufficient_credits", "insufficient_balance"]],
  [403, "permission_error", ["permission_denied", "key_limit_exceeded", "account_suspended"]],
  [
    404,
    "not_found_error",
    [
      "job_not_found",
      "file_not_found",
      "key_not_found",
      "webhook_not_found",
      "request_not_found",
      "object_not_found",
      "unknown_route",
    ],
  ],
  [405, "invalid_request_error", ["method_not_allowed"]],
  [409, "invalid_request_error", ["job_not_cancellable", "job_not_deletable", "state_conflict"]],
  [413, "invalid_request_error", ["payload_too_large"]],
  [415, "invalid_request_error", ["unsupported_media_type"]],
  [416, "invalid_request_error", ["range_not_satisfiable"]],
  [422, "idempotency_error", ["idempotency_key_reused", "idempotency_answer_not_kept"]],
  [426, "invalid_request_error", ["websocket_unsupported"]],
  [
    429,
    "rate_limit_error",
    ["rate_limit_exceeded", "too_many_open_requests", "websocket_stream_limit_reached"],
  ],
  [500, "server_error", ["internal_error"]],
  [502, "server_error", ["model_request_failed"]],
  [503, "server_error", ["service_unavailable", "upstream_unavailable", "usage_being_counted"]],
  [504, "server_error", ["upstream_timeout", "job_not_finished"]],
];

const rows = allReasons().map((reason) => ({ reason, ...errorRow(reason) }));
const line = (status: number, type: string, code: string) => `${status} ${type} ${code}`;

describe("the registry and the contract's table", () => {
  test("hold the same public codes, with the same status and type", () => {
    const ours = rows
      .filter((row) => row.audience === "public")
      .map((row) => line(row.status, row.type, row.code));
    const theirs = table.flatMap(([status, type, codes]) =>
      codes.map((code) => line(status, type, code)),
    );
    expect(ours.sort()).toEqual(theirs.sort());
  });

  test("the errors of failed jobs have the contract's types", () => {
    const types = Object.fromEntries(rows.map((row) => [row.code, row.type]));
    expect(types).toMatchObject({
      generation_failed: "server_error",
      upstream_timeout: "server_error",
      job_expired: "server_error",
      job_cancelled: "invalid_request_error",
      content_policy_violation: "invalid_request_error",
    });
  });

  test("every reason of the protocol has a row, and a code that is its name", () => {
    const names = ErrorReasonSchema.values.map((value) => value.name.replace("ERROR_REASON_", ""));
    expect(rows.map((row) => reasonName(row.reason)).sort()).toEqual(
      names.filter((name) => name !== "UNSPECIFIED").sort(),
    );
    for (const row of rows) expect(row.code).toBe(reasonName(row.reason).toLowerCase());
  });
});

/** Further codes of the console. */
const ofConsole: typeof table = [
  [403, "permission_error", ["secret_required", "cross_site_request", "insecure_connection"]],
];

test("what leaves over HTTP is in the table, for any reason", () => {
  const known = new Set(
    [...table, ...ofConsole].flatMap(([status, type, codes]) =>
      codes.map((code) => line(status, type, code)),
    ),
  );
  for (const { reason } of rows) {
    const { status, body } = toHttpError(new RefusalError(reason));
    expect(known).toContain(line(status, body.error.type, body.error.code));
    expect(body.error.message).not.toBe("");
  }
});

test("docs/errors.md is that of the registry (else: node gateway/errors-page.ts)", async () => {
  expect(await readFile(errorsPageFile, "utf8")).toBe(errorsPage());
});
