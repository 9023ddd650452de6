// The table of all errors: status, type and text of each reason. `errors.ts` reads it, and makes refusals of it. Other files ask
// `errors.ts`.

import { Code } from "@connectrpc/connect";
import { ErrorReason } from "#proto/genmesh/common/v1/error_reason_pb.ts";
import type { ErrorRow, ErrorType, Reason } from "./errors.ts";

const bad = at(Code.InvalidArgument, 400, "invalid_request_error");
const unpaid = at(Code.FailedPrecondition, 402, "insufficient_quota");
const forbidden = at(Code.PermissionDenied, 403, "permission_error");
const missing = at(Code.NotFound, 404, "not_found_error");
const conflict = at(Code.FailedPrecondition, 409, "invalid_request_error");
const ours = (rpc: Code, status: number) => at(rpc, status, "server_error");

/**
 * One row for each reason of error_reason.proto. The type makes the compiler ask for all of them. Codes and statuses are those of
 * the public API's tables.
 */
export const registry: Readonly<Record<Reason, ErrorRow>> = {
  [ErrorReason.INVALID_API_KEY]: at(
    Code.Unauthenticated,
    401,
    "authentication_error",
  )("The API key is missing, invalid, revoked or expired."),
  [ErrorReason.MODEL_NOT_FOUND]: bad(
    "There is no model '{model}' for this route and this API key. GET /models lists the models that the key may use.",
  ),
  [ErrorReason.UNSUPPORTED_CONTENT_TYPE]: bad(
    "This route or this model does not take a content part of this type. inputModalities in GET /models say what a model takes.",
  ),
  [ErrorReason.MODEL_NOT_RESPONSES_CAPABLE]: at(
    Code.FailedPrecondition,
    400,
    "invalid_request_error",
  )(
    "The model '{model}' does not offer this route. Use another model, or POST /chat/completions for a chat model.",
  ),
  [ErrorReason.UNSUPPORTED_PARAMETER]: bad(
    "The parameter '{param}' is not supported here, or not with this value. Leave it out or change it.",
  ),
  [ErrorReason.INVALID_IMAGE]: bad(
    "An image must be a public HTTPS URL or a valid JPEG or PNG data URL.",
  ),
  [ErrorReason.IMAGE_LIMIT_EXCEEDED]: bad("A request takes at most 20 images."),
  [ErrorReason.MODEL_REQUEST_FAILED]: ours(
    Code.Unavailable,
    502,
  )(
    "The model did not complete the request. Where a later one fails too, ask the operator of this service.",
  ),
  [ErrorReason.UNSUPPORTED_SIZE]: bad(
    "The model does not offer this size. GET /models lists its sizes.",
  ),
  [ErrorReason.INVALID_INPUT_REFERENCE]: bad(
    "An input reference must have exactly one of file_id and image_url.",
  ),
  [ErrorReason.UNSAFE_REFERENCE_URL]: bad(
    "The reference's URL must lead to a public address. Upload the image with POST /files otherwise.",
  ),
  [ErrorReason.INVALID_REFERENCE_IMAGE]: bad(
    "A reference must be a valid JPEG, PNG or WebP image of up to 20 MiB.",
  ),
  [ErrorReason.INSUFFICIENT_CREDITS]: unpaid(
    "The account has too few credits for the price of this job. GET /billing shows what it has.",
  ),
  [ErrorReason.INVALID_JSON]: bad("The body must be a valid JSON object."),
  [ErrorReason.MISSING_REQUIRED_PARAMETER]: bad("The parameter '{param}' is required."),
  [ErrorReason.INVALID_TYPE]: bad("The parameter '{param}' is of the wrong type."),
  [ErrorReason.INVALID_VALUE]: bad("The parameter '{param}' has a value that is not accepted."),
  [ErrorReason.IMAGE_TOO_LARGE]: bad("Images may have 20 MiB each and 20 MiB together."),
  [ErrorReason.CONTEXT_LENGTH_EXCEEDED]: bad(
    "The input and the output that it may have do not fit into the model's context. Shorten the input or lower max_output_tokens.",
  ),
  [ErrorReason.UNSUPPORTED_DURATION]: bad("The model does not offer this duration."),
  [ErrorReason.UNSUPPORTED_RESOLUTION]: bad("The model does not offer this resolution."),
  [ErrorReason.UNSUPPORTED_ASPECT_RATIO]: bad("The model does not offer this aspect ratio."),
  [ErrorReason.UNSUPPORTED_MODE]: bad(
    "The model does not offer this generation mode. GET /models lists its modes.",
  ),
  [ErrorReason.TOO_MANY_REFERENCES]: bad("The model takes at most {max_references} references."),
  [ErrorReason.REFERENCE_NOT_FOUND]: bad(
    "No file of the account and no output of this API key has this id. POST /files uploads one.",
  ),
  [ErrorReason.UPLOAD_QUOTA_EXCEEDED]: bad(
    "The account's upload quota has no room for this file. DELETE /files/{id} makes room.",
  ),
  [ErrorReason.UNSUPPORTED_VOICE]: bad("The model does not offer this voice."),
  [ErrorReason.UNSUPPORTED_LANGUAGE]: bad("The model does not offer this language."),
  [ErrorReason.CONTENT_POLICY_VIOLATION]: bad("The model's safety check refused the request."),
  [ErrorReason.INVALID_IDEMPOTENCY_KEY]: bad("An Idempotency-Key must have 1 to 255 characters."),
  [ErrorReason.INSUFFICIENT_BALANCE]: unpaid(
    "The account's balance does not cover what this request may cost. GET /billing shows what it has.",
  ),
  [ErrorReason.PERMISSION_DENIED]: forbidden("The API key may not do this."),
  [ErrorReason.KEY_LIMIT_EXCEEDED]: forbidden(
    "The request may cost more than is left of the API key's limit. GET /key shows the limit and what is left.",
  ),
  [ErrorReason.ACCOUNT_SUSPENDED]: forbidden(
    "The account is suspended and may only read. Ask the operator of this service.",
  ),
  [ErrorReason.KEY_NOT_FOUND]: missing("There is no such key."),
  [ErrorReason.REQUEST_NOT_FOUND]: missing("There is no such request."),
  [ErrorReason.JOB_NOT_FOUND]: missing("There is no such job."),
  [ErrorReason.FILE_NOT_FOUND]: missing("There is no such file."),
  [ErrorReason.WEBHOOK_NOT_FOUND]: missing("There is no such webhook."),
  [ErrorReason.JOB_NOT_CANCELLABLE]: conflict(
    "The job can no longer be cancelled: it has ended, or its outputs are stored and being charged.",
  ),
  [ErrorReason.JOB_NOT_DELETABLE]: conflict("The job has not ended. Cancel it first."),
  [ErrorReason.OBJECT_NOT_FOUND]: missing("There is no such object."),
  [ErrorReason.STATE_CONFLICT]: conflict(
    "This is not possible as things stand now, or the operation id was used for something else. Load the page again.",
  ),
  [ErrorReason.UNKNOWN_ROUTE]: at(
    Code.Unimplemented,
    404,
    "not_found_error",
  )("There is no such path. /openapi.json lists all paths, and /docs shows them."),
  [ErrorReason.METHOD_NOT_ALLOWED]: at(
    Code.Unimplemented,
    405,
    "invalid_request_error",
  )("The path does not take this method. The header Allow names those that it takes."),
  [ErrorReason.WEBSOCKET_UNSUPPORTED]: at(
    Code.Unimplemented,
    426,
    "invalid_request_error",
  )("WebSockets are not offered here. Send POST /responses, with stream true for events."),
  [ErrorReason.PREVIOUS_RESPONSE_NOT_FOUND]: bad(
    "This WebSocket does not have the response that 'previous_response_id' names. Send the whole conversation as input.",
  ),
  [ErrorReason.INVALID_STREAM_ID]: bad(
    "A stream_id must have 1 to 256 characters of A-Z, a-z, 0-9, _, . and -. A WebSocket has at most 32 of them.",
  ),
  [ErrorReason.WEBSOCKET_CONNECTION_LIMIT_REACHED]: bad(
    "This WebSocket takes no further request. Open another one, and send the whole conversation as input.",
  ),
  [ErrorReason.WEBSOCKET_STREAM_LIMIT_REACHED]: at(
    Code.ResourceExhausted,
    429,
    "rate_limit_error",
  )("Too many requests wait on this WebSocket. Wait until some of them have ended."),
  [ErrorReason.PAYLOAD_TOO_LARGE]: at(
    Code.InvalidArgument,
    413,
    "invalid_request_error",
  )("The body is too large."),
  [ErrorReason.UNSUPPORTED_MEDIA_TYPE]: at(
    Code.InvalidArgument,
    415,
    "invalid_request_error",
  )(
    "The Content-Type is not accepted here. Send application/json, or multipart/form-data where the route takes a form.",
  ),
  [ErrorReason.RANGE_NOT_SATISFIABLE]: at(
    Code.OutOfRange,
    416,
    "invalid_request_error",
  )("The range lies outside the file."),
  [ErrorReason.IDEMPOTENCY_KEY_REUSED]: at(
    Code.AlreadyExists,
    422,
    "idempotency_error",
  )("The Idempotency-Key was used with a different request. Use a new key for a new request."),
  [ErrorReason.IDEMPOTENCY_ANSWER_NOT_KEPT]: at(
    Code.FailedPrecondition,
    422,
    "idempotency_error",
  )(
    "The request of this Idempotency-Key was answered and charged, but its answer was too large to keep. A new key generates, and pays, anew.",
  ),
  [ErrorReason.RATE_LIMIT_EXCEEDED]: at(
    Code.ResourceExhausted,
    429,
    "rate_limit_error",
  )("Too many requests. Wait as long as the header Retry-After says."),
  [ErrorReason.TOO_MANY_OPEN_REQUESTS]: at(
    Code.ResourceExhausted,
    429,
    "rate_limit_error",
  )(
    "The account has {limit} requests or jobs under way, as many as it may have: wait until some have ended.",
  ),
  [ErrorReason.INTERNAL_ERROR]: ours(
    Code.Internal,
    500,
  )(
    "Something went wrong on our side. Tell the operator of this service the x-request-id of this answer.",
  ),
  [ErrorReason.SERVICE_UNAVAILABLE]: ours(
    Code.Unavailable,
    503,
  )("The service is not available at the moment. Try again in a moment."),
  [ErrorReason.USAGE_BEING_COUNTED]: ours(
    Code.Unavailable,
    503,
  )("The account's usage is still being added up. Try again in a moment."),
  // Sent by older media services alone. Newer ones send SERVICE_UNAVAILABLE, with this text where one model is meant.
  [ErrorReason.UPSTREAM_UNAVAILABLE]: ours(
    Code.Unavailable,
    503,
  )("The model is not available at the moment. Try again in a moment."),
  [ErrorReason.UPSTREAM_TIMEOUT]: ours(
    Code.DeadlineExceeded,
    504,
  )("The model did not answer in time."),
  [ErrorReason.JOB_NOT_FINISHED]: ours(
    Code.DeadlineExceeded,
    504,
  )("The job has not ended in time. It goes on: poll its status."),
  [ErrorReason.GENERATION_FAILED]: job("The generation failed."),
  [ErrorReason.JOB_EXPIRED]: job("The job was not begun within 24 hours."),
  [ErrorReason.JOB_CANCELLED]: { ...job("The job was cancelled."), type: "invalid_request_error" },
  [ErrorReason.SECRET_REQUIRED]: ofConsole(
    "Enter the secret of the sign-in again: this needs it in the header 'x-console-secret'.",
  ),
  [ErrorReason.CROSS_SITE_REQUEST]: ofConsole(
    "Only the console's own pages may send this request. Programs use /v1 with an API key.",
  ),
  [ErrorReason.INSECURE_CONNECTION]: ofConsole(
    "The console needs HTTPS: over plain HTTP it is served on the loopback alone (127.0.0.1, localhost). Behind a proxy that " +
      "ends TLS, name the proxy in GENMESH_TRUST_PROXY.",
  ),
  [ErrorReason.ACCOUNT_NOT_FOUND]: operator(Code.NotFound, 404, "There is no such account."),
  [ErrorReason.HOLD_NOT_FOUND]: operator(Code.NotFound, 404, "There is no such hold."),
  [ErrorReason.ENTRY_NOT_FOUND]: operator(Code.NotFound, 404, "There is no such entry."),
  [ErrorReason.OPERATION_MISMATCH]: operator(
    Code.AlreadyExists,
    500,
    "The operation id was used before with other content.",
  ),
  [ErrorReason.CALLER_UNAUTHENTICATED]: operator(
    Code.Unauthenticated,
    500,
    "The internal call carries no valid token.",
  ),
  [ErrorReason.CALLER_FORBIDDEN]: operator(
    Code.PermissionDenied,
    500,
    "This method needs {needs}, which the internal call does not carry.",
  ),
  [ErrorReason.INVALID_ARGUMENT]: operator(
    Code.InvalidArgument,
    500,
    "The field '{field}' has a value that it may not have. The .proto file says which it may.",
  ),
  [ErrorReason.OPERATION_CONFLICT]: operator(
    Code.FailedPrecondition,
    500,
    "This is not possible as things stand now.",
  ),
  [ErrorReason.WATCH_RESET]: operator(
    Code.OutOfRange,
    500,
    "The watch cannot continue from this revision. Begin it anew, without one.",
  ),
};

/** Makes rows of the public API's tables. */
function at(rpc: Code, status: number, type: ErrorType): (message: string) => ErrorRow {
  return (message) => ({ rpc, status, type, message, audience: "public" });
}

/** Makes rows of errors that only the console answers: it does not take the request in this form. */
function ofConsole(message: string): ErrorRow {
  return { ...forbidden(message), audience: "console" };
}

/** A failed job's error; its status is never sent. */
function job(message: string): ErrorRow {
  return { rpc: Code.Aborted, status: 500, type: "server_error", message, audience: "job" };
}

/** Makes rows for internal callers. At the edge only missing things have a meaning. */
function operator(rpc: Code, status: number, message: string): ErrorRow {
  const type = status === 404 ? "not_found_error" : "server_error";
  return { rpc, status, type, message, audience: "operator" };
}
