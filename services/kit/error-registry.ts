import { Code } from "@connectrpc/connect";
import { ErrorReason } from "#proto/genmesh/common/v1/error_reason_pb.ts";
import type { ErrorRow, ErrorType, Reason } from "./errors.ts";

const bad = at(Code.InvalidArgument, 400, "invalid_request_error");
const unpaid = at(Code.FailedPrecondition, 402, "insufficient_quota");
const forbidden = at(Code.PermissionDenied, 403, "permission_error");
const missing = at(Code.NotFound, 404, "not_found_error");
const conflict = at(Code.FailedPrecondition, 409, "invalid_request_error");
const ours = (rpc: Code, status: number) => at(rpc, status, "server_error");

/** One row for each reason of error_reason.proto; complete by type. Codes and statuses: the public API's tables. */
export const registry: Readonly<Record<Reason, ErrorRow>> = {
  [ErrorReason.INVALID_API_KEY]: at(
    Code.Unauthenticated,
    401,
    "authentication_error",
  )("The API key is missing, invalid, revoked or expired."),
  [ErrorReason.MODEL_NOT_FOUND]: bad(
    "The model '{model}' does not exist or is not available for this operation.",
  ),
  [ErrorReason.UNSUPPORTED_CONTENT_TYPE]: bad(
    "A content part is of a type that is not supported here.",
  ),
  [ErrorReason.MODEL_NOT_RESPONSES_CAPABLE]: at(
    Code.FailedPrecondition,
    400,
    "invalid_request_error",
  )("The model '{model}' does not offer this operation."),
  [ErrorReason.UNSUPPORTED_PARAMETER]: bad(
    "The parameter '{param}' is not supported, or not with this value.",
  ),
  [ErrorReason.INVALID_IMAGE]: bad(
    "An image is not a public HTTPS URL or a valid JPEG or PNG data URL.",
  ),
  [ErrorReason.IMAGE_LIMIT_EXCEEDED]: bad("A request takes at most 20 images."),
  [ErrorReason.MODEL_REQUEST_FAILED]: ours(
    Code.Unavailable,
    502,
  )("The model request could not be completed."),
  [ErrorReason.UNSUPPORTED_SIZE]: bad("The size is not supported."),
  [ErrorReason.INVALID_INPUT_REFERENCE]: bad(
    "An input reference holds exactly one of file_id and image_url.",
  ),
  [ErrorReason.UNSAFE_REFERENCE_URL]: bad("The reference's URL does not lead to a public address."),
  [ErrorReason.INVALID_REFERENCE_IMAGE]: bad(
    "The reference is not a valid JPEG, PNG or WebP image of up to 20 MiB.",
  ),
  [ErrorReason.INSUFFICIENT_CREDITS]: unpaid(
    "The account's credits do not cover the price of this job.",
  ),
  [ErrorReason.INVALID_JSON]: bad("The body is not a valid JSON object."),
  [ErrorReason.MISSING_REQUIRED_PARAMETER]: bad("The parameter '{param}' is required."),
  [ErrorReason.INVALID_TYPE]: bad("The parameter '{param}' is of the wrong type."),
  [ErrorReason.INVALID_VALUE]: bad("The parameter '{param}' has a value that is not accepted."),
  [ErrorReason.IMAGE_TOO_LARGE]: bad("Images may have 20 MiB each and 20 MiB together."),
  [ErrorReason.CONTEXT_LENGTH_EXCEEDED]: bad(
    "The input and the reserved output do not fit into the model's context.",
  ),
  [ErrorReason.UNSUPPORTED_DURATION]: bad("The model does not offer this duration."),
  [ErrorReason.UNSUPPORTED_RESOLUTION]: bad("The model does not offer this resolution."),
  [ErrorReason.UNSUPPORTED_ASPECT_RATIO]: bad("The model does not offer this aspect ratio."),
  [ErrorReason.UNSUPPORTED_MODE]: bad("The model does not offer this generation mode."),
  [ErrorReason.TOO_MANY_REFERENCES]: bad("The model takes at most {max_references} references."),
  [ErrorReason.REFERENCE_NOT_FOUND]: bad(
    "Neither a file of the account nor an output of the API key is named so.",
  ),
  [ErrorReason.UPLOAD_QUOTA_EXCEEDED]: bad(
    "The account's upload quota does not leave room for this file.",
  ),
  [ErrorReason.UNSUPPORTED_VOICE]: bad("The model does not offer this voice."),
  [ErrorReason.UNSUPPORTED_LANGUAGE]: bad("The model does not offer this language."),
  [ErrorReason.CONTENT_POLICY_VIOLATION]: bad(
    "The request was refused by the model's safety check.",
  ),
  [ErrorReason.INVALID_IDEMPOTENCY_KEY]: bad("An Idempotency-Key has 1 to 255 characters."),
  [ErrorReason.INSUFFICIENT_BALANCE]: unpaid(
    "The account's balance does not cover what this request may cost.",
  ),
  [ErrorReason.PERMISSION_DENIED]: forbidden("The API key may not do this."),
  [ErrorReason.KEY_LIMIT_EXCEEDED]: forbidden("The API key's limit would be exceeded."),
  [ErrorReason.ACCOUNT_SUSPENDED]: forbidden("The account is suspended: it may only read."),
  [ErrorReason.KEY_NOT_FOUND]: missing("No such key."),
  [ErrorReason.REQUEST_NOT_FOUND]: missing("No such request."),
  [ErrorReason.JOB_NOT_FOUND]: missing("No such job."),
  [ErrorReason.FILE_NOT_FOUND]: missing("No such file."),
  [ErrorReason.WEBHOOK_NOT_FOUND]: missing("No such webhook."),
  [ErrorReason.JOB_NOT_CANCELLABLE]: conflict(
    "The job has ended, or its outputs are stored and being charged.",
  ),
  [ErrorReason.JOB_NOT_DELETABLE]: conflict("The job has not ended. Cancel it first."),
  [ErrorReason.OBJECT_NOT_FOUND]: missing("No such object."),
  [ErrorReason.STATE_CONFLICT]: conflict(
    "The state does not allow this, or the operation id was used for something else.",
  ),
  [ErrorReason.UNKNOWN_ROUTE]: at(Code.Unimplemented, 404, "not_found_error")("No such path."),
  [ErrorReason.METHOD_NOT_ALLOWED]: at(
    Code.Unimplemented,
    405,
    "invalid_request_error",
  )("The path does not take this method."),
  [ErrorReason.PAYLOAD_TOO_LARGE]: at(
    Code.InvalidArgument,
    413,
    "invalid_request_error",
  )("The body is too large."),
  [ErrorReason.UNSUPPORTED_MEDIA_TYPE]: at(
    Code.InvalidArgument,
    415,
    "invalid_request_error",
  )("The content type is not accepted here."),
  [ErrorReason.RANGE_NOT_SATISFIABLE]: at(
    Code.OutOfRange,
    416,
    "invalid_request_error",
  )("The range lies outside the file."),
  [ErrorReason.IDEMPOTENCY_KEY_REUSED]: at(
    Code.AlreadyExists,
    422,
    "idempotency_error",
  )("The Idempotency-Key was used with a different request."),
  [ErrorReason.IDEMPOTENCY_ANSWER_NOT_KEPT]: at(
    Code.FailedPrecondition,
    422,
    "idempotency_error",
  )(
    "The request of this Idempotency-Key was answered and charged, but its answer could not be kept.",
  ),
  [ErrorReason.RATE_LIMIT_EXCEEDED]: at(
    Code.ResourceExhausted,
    429,
    "rate_limit_error",
  )("Too many requests."),
  [ErrorReason.TOO_MANY_OPEN_REQUESTS]: at(
    Code.ResourceExhausted,
    429,
    "rate_limit_error",
  )(
    "The account has {limit} requests or jobs under way, as many as it may have: wait until some have ended.",
  ),
  [ErrorReason.INTERNAL_ERROR]: ours(Code.Internal, 500)("Something went wrong on our side."),
  [ErrorReason.SERVICE_UNAVAILABLE]: ours(
    Code.Unavailable,
    503,
  )("The service is not available at the moment."),
  [ErrorReason.USAGE_BEING_COUNTED]: ours(
    Code.Unavailable,
    503,
  )("The account's usage is still being added up. Try again in a moment."),
  // Of older media services: newer ones say SERVICE_UNAVAILABLE, with these words where one model is meant.
  [ErrorReason.UPSTREAM_UNAVAILABLE]: ours(
    Code.Unavailable,
    503,
  )("The model is not available at the moment."),
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
    "This needs the secret of the session again, in the header 'x-console-secret'.",
  ),
  [ErrorReason.CROSS_SITE_REQUEST]: ofConsole(
    "The console takes this request from its own pages alone.",
  ),
  [ErrorReason.INSECURE_CONNECTION]: ofConsole(
    "The console needs HTTPS: over plain HTTP it is served on the loopback alone (127.0.0.1, localhost). Behind a proxy that " +
      "ends TLS, name the proxy in GENMESH_TRUST_PROXY.",
  ),
  [ErrorReason.ACCOUNT_NOT_FOUND]: operator(Code.NotFound, 404, "No such account."),
  [ErrorReason.HOLD_NOT_FOUND]: operator(Code.NotFound, 404, "No such hold."),
  [ErrorReason.ENTRY_NOT_FOUND]: operator(Code.NotFound, 404, "No such entry."),
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
    "The internal call lacks what this method needs: {needs}.",
  ),
  [ErrorReason.INVALID_ARGUMENT]: operator(
    Code.InvalidArgument,
    500,
    "The field '{field}' breaks its rule.",
  ),
  [ErrorReason.OPERATION_CONFLICT]: operator(
    Code.FailedPrecondition,
    500,
    "The state does not allow this operation.",
  ),
  [ErrorReason.WATCH_RESET]: operator(
    Code.OutOfRange,
    500,
    "The watch cannot continue from this revision.",
  ),
};

/** Makes rows of the public tables. */
function at(rpc: Code, status: number, type: ErrorType): (message: string) => ErrorRow {
  return (message) => ({ rpc, status, type, message, audience: "public" });
}

/** The console does not take a request as it came. */
function ofConsole(message: string): ErrorRow {
  return { ...forbidden(message), audience: "console" };
}

/** A failed job's error; its status is never sent. */
function job(message: string): ErrorRow {
  return { rpc: Code.Aborted, status: 500, type: "server_error", message, audience: "job" };
}

/** For internal callers. At the edge only what is missing has a meaning of its own. */
function operator(rpc: Code, status: number, message: string): ErrorRow {
  const type = status === 404 ? "not_found_error" : "server_error";
  return { rpc, status, type, message, audience: "operator" };
}
