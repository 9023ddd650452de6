// Describes the errors that each operation may answer, for the OpenAPI document. `errors.ts` writes the real ones.

import { messagesErrorOf } from "#common/words/messages-errors.ts";
import { ErrorReason, errorRow, type Reason } from "#kit/base/errors.ts";
import {
  contentOf,
  errorFields,
  fieldsOf,
  integer,
  json,
  notModified,
  optional,
  ref,
  type Schema,
  string,
  tag,
} from "./schemas.ts";

/** Reasons that every operation has. */
const always: readonly Reason[] = [
  ErrorReason.INVALID_API_KEY,
  ErrorReason.PERMISSION_DENIED,
  ErrorReason.METHOD_NOT_ALLOWED,
  ErrorReason.RATE_LIMIT_EXCEEDED,
  ErrorReason.INTERNAL_ERROR,
  ErrorReason.SERVICE_UNAVAILABLE,
];

/** Of an operation with parameters in its query. */
export const queryReasons: readonly Reason[] = [
  ErrorReason.INVALID_TYPE,
  ErrorReason.INVALID_VALUE,
];

/** Of an operation that changes something. */
export const changeReasons: readonly Reason[] = [ErrorReason.ACCOUNT_SUSPENDED];

/** Of an operation with a body, as JSON or as a form. */
export const bodyReasons: readonly Reason[] = [
  ErrorReason.INVALID_JSON,
  ErrorReason.MISSING_REQUIRED_PARAMETER,
  ErrorReason.INVALID_TYPE,
  ErrorReason.INVALID_VALUE,
  ErrorReason.UNSUPPORTED_PARAMETER,
  ErrorReason.PAYLOAD_TOO_LARGE,
  ErrorReason.UNSUPPORTED_MEDIA_TYPE,
  ...changeReasons,
];

/** Of an operation that takes an Idempotency-Key. */
export const repeatReasons: readonly Reason[] = [
  ErrorReason.INVALID_IDEMPOTENCY_KEY,
  ErrorReason.IDEMPOTENCY_KEY_REUSED,
];

/** Of an operation that is paid for with USD. */
const usdReasons: readonly Reason[] = [
  ErrorReason.INSUFFICIENT_BALANCE,
  ErrorReason.KEY_LIMIT_EXCEEDED,
  ErrorReason.TOO_MANY_OPEN_REQUESTS,
];

/** Of an operation during which a model answers. */
const answerReasons: readonly Reason[] = [
  ErrorReason.CONTENT_POLICY_VIOLATION,
  ErrorReason.MODEL_REQUEST_FAILED,
  ErrorReason.UPSTREAM_TIMEOUT,
];

/** Of an operation of text that is checked and paid for: also of embeddings and transcriptions. */
export const paidTextReasons: readonly Reason[] = [
  ErrorReason.MODEL_NOT_FOUND,
  ErrorReason.MODEL_NOT_RESPONSES_CAPABLE,
  ErrorReason.CONTEXT_LENGTH_EXCEEDED,
  ErrorReason.IDEMPOTENCY_ANSWER_NOT_KEPT,
  ...[...bodyReasons, ...repeatReasons, ...usdReasons, ...answerReasons],
];

/** Of a conversation. */
export const conversationReasons: readonly Reason[] = [
  ErrorReason.MODEL_NOT_FOUND,
  ErrorReason.MODEL_NOT_RESPONSES_CAPABLE,
  ErrorReason.CONTEXT_LENGTH_EXCEEDED,
  ErrorReason.UNSUPPORTED_CONTENT_TYPE,
  ErrorReason.INVALID_IMAGE,
  ErrorReason.IMAGE_LIMIT_EXCEEDED,
  ErrorReason.IMAGE_TOO_LARGE,
  ErrorReason.REFERENCE_NOT_FOUND,
  ...bodyReasons,
];

/** Of a text that is spoken. */
export const speechReasons: readonly Reason[] = [
  ErrorReason.MODEL_NOT_FOUND,
  ErrorReason.UNSUPPORTED_VOICE,
  ErrorReason.UNSUPPORTED_LANGUAGE,
  ...[...bodyReasons, ...repeatReasons, ...usdReasons, ...answerReasons],
];

/** Of an operation that makes a job. */
export const jobReasons: readonly Reason[] = [
  ErrorReason.MODEL_NOT_FOUND,
  ErrorReason.INSUFFICIENT_CREDITS,
  ErrorReason.TOO_MANY_OPEN_REQUESTS,
  ...[...bodyReasons, ...repeatReasons],
];

/** Of an image job: its references and its form. */
export const imageReasons: readonly Reason[] = [
  ErrorReason.INVALID_INPUT_REFERENCE,
  ErrorReason.UNSAFE_REFERENCE_URL,
  ErrorReason.INVALID_REFERENCE_IMAGE,
  ErrorReason.REFERENCE_NOT_FOUND,
  ErrorReason.TOO_MANY_REFERENCES,
  ErrorReason.UPLOAD_QUOTA_EXCEEDED,
  ErrorReason.UNSUPPORTED_SIZE,
  ErrorReason.UNSUPPORTED_RESOLUTION,
  ErrorReason.UNSUPPORTED_ASPECT_RATIO,
];

/** Of a video job. */
export const videoReasons: readonly Reason[] = [
  ...imageReasons,
  ErrorReason.UNSUPPORTED_MODE,
  ErrorReason.UNSUPPORTED_DURATION,
];

/** Of a call that waits for its images. */
export const imageWaitReasons: readonly Reason[] = [
  ...answerReasons,
  ErrorReason.JOB_NOT_FINISHED,
  ErrorReason.JOB_NOT_FOUND,
];

/** The error answers of an operation under `/v1`: its own reasons, and those that every operation has. */
export function errors(...reasons: readonly Reason[]): Record<string, Schema> {
  return answersOf(reasons, (reason) => errorRow(reason).status, ref("Error"));
}

/** The error answers of a route of Anthropic's API. */
export function messagesErrors(...reasons: readonly Reason[]): Record<string, Schema> {
  const statusOf = (reason: Reason) => messagesErrorOf(reason).status;
  return answersOf(reasons, statusOf, ref("MessagesError"));
}

/** Codes come from the registry, so that the documentation cannot differ from the real answers. */
function answersOf(
  own: readonly Reason[],
  statusOf: (reason: Reason) => number,
  schema: Schema,
): Record<string, Schema> {
  const reasons = [...new Set([...own, ...always])];
  const statuses = [...new Set(reasons.map(statusOf))].sort((a, b) => a - b);
  return Object.fromEntries(
    statuses.map((status) => {
      const ofStatus = reasons.filter((reason) => statusOf(reason) === status);
      return [String(status), errorAnswer(ofStatus, schema)];
    }),
  );
}

function errorAnswer(reasons: readonly Reason[], schema: Schema): Schema {
  const codes = reasons.map((reason) => `\`${errorRow(reason).code}\``);
  return json(`\`error.code\` is one of: ${codes.join(", ")}.`, schema);
}

/** The answer of a route of Anthropic's API whose model has no room at present. */
export const overloadedAnswer: Record<string, Schema> = {
  529: errorAnswer(
    [
      ErrorReason.SERVICE_UNAVAILABLE,
      ErrorReason.MODEL_REQUEST_FAILED,
      ErrorReason.UPSTREAM_TIMEOUT,
    ],
    ref("MessagesError"),
  ),
};

/** Answers of a download. */
export function downloadAnswers(...mediaTypes: string[]): Record<string, Schema> {
  const content = contentOf(mediaTypes);
  return {
    200: { description: "The whole file, with its `ETag`.", content },
    206: { description: "The range that was asked for.", content },
    304: notModified,
    ...errors(ErrorReason.FILE_NOT_FOUND, ErrorReason.RANGE_NOT_SATISFIABLE),
  };
}

const { message, code, param } = errorFields;

/** Amounts of a refusal for money. */
export const moneyFields: Record<string, Schema> = {
  requiredUsdMicros: integer(
    "With `insufficient_balance` and `key_limit_exceeded`: the least that the request would have to hold.",
  ),
  spendableUsdMicros: integer("With them: what wallet and key have."),
  maxOutputTokens: integer(
    "With them, of a text request: the largest `max_output_tokens` that would be taken; 0 where not even the input is covered.",
  ),
};

/** Fields of an error whose request was charged. */
export const chargedFields: Record<string, Schema> = {
  requestId: string("With `idempotency_answer_not_kept`: the id of the first answer."),
  costUsdMicros: integer(
    "With `idempotency_answer_not_kept`: what that one cost. With any other error: what this one cost all the same.",
  ),
};

/** An error of Anthropic's API. */
export const messagesError: Schema = {
  $id: "MessagesError",
  ...fieldsOf(
    {
      type: tag("error"),
      error: fieldsOf({
        type: string("The family of the error."),
        message: message as Schema,
        ...optional({ code: code as Schema, param: param as Schema }),
        ...optional({ ...moneyFields, ...chargedFields }),
      }),
      request_id: string("The id of the request, as the header `request-id`."),
    },
    { description: "An error of `POST /messages`, in Anthropic's form." },
  ),
};
