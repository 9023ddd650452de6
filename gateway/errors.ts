// Turns a refusal into the error of the public API: status, headers, body. `messages-errors.ts` does the same in Anthropic's
// form.

import {
  ErrorReason,
  type ErrorType,
  errorRow,
  isRefusal,
  type Reason,
  RefusalError,
} from "#kit/base/errors.ts";

/** The `error` of the public API. */
interface ErrorBody {
  message: string;
  type: ErrorType;
  param: string | null;
  code: string;
  availableOptions?: unknown;
  availableAspectRatios?: unknown;
  requiredUsdMicros?: number;
  spendableUsdMicros?: number;
  maxOutputTokens?: number;
  requiredCredits?: number;
  spendableCredits?: number;
  /** The job that a caller waited for, and the URL to poll. */
  jobId?: string;
  statusUrl?: string;
  requestId?: string;
  costUsdMicros?: number;
}

/** An error in its form over HTTP: status, headers, body. */
interface HttpError {
  status: number;
  headers: Record<string, string>;
  body: { error: ErrorBody };
}

/** The caller went away before it had its answer. */
export class CallerLeftError extends Error {
  override readonly name = "CallerLeftError";
}

/** Header with the charge of an answer. */
export const costHeader = "x-genmesh-cost-usd-micros";

/** Headers beside the body, by reason. */
const reasonHeaders: { readonly [R in Reason]?: Record<string, string> } = {
  [ErrorReason.INVALID_API_KEY]: { "www-authenticate": "Bearer" },
  [ErrorReason.INSUFFICIENT_BALANCE]: { "x-should-retry": "false" },
  [ErrorReason.INSUFFICIENT_CREDITS]: { "x-should-retry": "false" },
  [ErrorReason.IDEMPOTENCY_KEY_REUSED]: { "x-should-retry": "false" },
  [ErrorReason.JOB_NOT_CANCELLABLE]: { "x-should-retry": "false" },
  [ErrorReason.JOB_NOT_DELETABLE]: { "x-should-retry": "false" },
  [ErrorReason.IDEMPOTENCY_ANSWER_NOT_KEPT]: { "x-should-retry": "false" },
};

/** Reasons that always state when to try again. Without a time of their own it is after a second. */
const retryable: ReadonlySet<Reason> = new Set([
  ErrorReason.RATE_LIMIT_EXCEEDED,
  ErrorReason.TOO_MANY_OPEN_REQUESTS,
  ErrorReason.WEBSOCKET_STREAM_LIMIT_REACHED,
  ErrorReason.SERVICE_UNAVAILABLE,
]);

const usdNumbers = {
  required: "requiredUsdMicros",
  spendable: "spendableUsdMicros",
  max_output_tokens: "maxOutputTokens",
} as const;

/** Numbers of a refusal in its body, by reason: the metadata's name and the body's. */
const reasonNumbers: {
  readonly [R in Reason]?: Readonly<Record<string, keyof ErrorBody>>;
} = {
  [ErrorReason.INSUFFICIENT_BALANCE]: usdNumbers,
  [ErrorReason.KEY_LIMIT_EXCEEDED]: usdNumbers,
  [ErrorReason.INSUFFICIENT_CREDITS]: {
    required: "requiredCredits",
    spendable: "spendableCredits",
  },
};
/** For any reason: the charge that was made in spite of the error. */
const anyNumbers = { cost: "costUsdMicros" } as const;

/** Reasons of internal calls are faults of the service here and become INTERNAL_ERROR, because their text is for operators. */
export function publicRefusal(refusal: RefusalError): RefusalError {
  const { audience } = errorRow(refusal.reason);
  const isPublic = audience !== "job" && audience !== "operator";
  return isPublic ? refusal : new RefusalError(ErrorReason.INTERNAL_ERROR);
}

/** A refusal in its form over HTTP, by the registry. */
export function toHttpError(error: RefusalError): HttpError {
  const refusal = publicRefusal(error);
  return {
    status: errorRow(refusal.reason).status,
    headers: {
      ...reasonHeaders[refusal.reason],
      ...headersOf(refusal),
      ...(isRetryable(refusal) ? { "retry-after": retryAfter(refusal) } : {}),
    },
    body: { error: toErrorBody(refusal) },
  };
}

/** The `error` of a refusal, even of one that only a failed job carries. */
export function toErrorBody(refusal: RefusalError): ErrorBody {
  const row = errorRow(refusal.reason);
  const options = parsed(refusal.metadata.available_options);
  const ratios = parsed(refusal.metadata.available_aspect_ratios);
  return {
    message: refusal.message,
    type: row.type,
    param: refusal.param ?? null,
    code: row.code,
    ...(options === undefined ? {} : { availableOptions: options }),
    ...(ratios === undefined ? {} : { availableAspectRatios: ratios }),
    ...numbersOf(refusal),
    ...(refusal.metadata.job_id === undefined ? {} : { jobId: refusal.metadata.job_id }),
    ...(refusal.metadata.status_url === undefined
      ? {}
      : { statusUrl: refusal.metadata.status_url }),
    ...(refusal.reason === ErrorReason.IDEMPOTENCY_ANSWER_NOT_KEPT
      ? { requestId: refusal.metadata.request_id ?? "" }
      : {}),
  };
}

/** Exact up to 2^53, like the amounts of a balance. */
function numbersOf({ reason, metadata }: RefusalError): Partial<ErrorBody> {
  const numbers = { ...reasonNumbers[reason], ...anyNumbers };
  const named = Object.entries(numbers).flatMap(([name, field]) => {
    const value = metadata[name];
    return value === undefined ? [] : [[field, Number(value)]];
  });
  return Object.fromEntries(named);
}

/** The refusal for an error of the HTTP framework, or undefined where the error is the gateway's own. */
export function refusalOf(error: unknown): RefusalError | undefined {
  if (isRefusal(error)) return error;
  const { code, statusCode } = error as { code?: unknown; statusCode?: unknown };
  if (typeof code !== "string" || !code.startsWith("FST_")) return undefined;
  if (statusCode === 415) return new RefusalError(ErrorReason.UNSUPPORTED_MEDIA_TYPE);
  if (statusCode === 413) return new RefusalError(ErrorReason.PAYLOAD_TOO_LARGE);
  if (statusCode === 404) return new RefusalError(ErrorReason.UNKNOWN_ROUTE);
  if (statusCode === 400) return malformed("The request is malformed.");
  return undefined;
}

/** A request that breaks HTTP itself. The API's contract has no code for that. */
export function malformed(message: string): RefusalError {
  return new RefusalError(ErrorReason.INVALID_VALUE, { message });
}

/** Facts of a refusal that are headers: rate limits, the methods of a path, the size of a file. */
function headersOf(refusal: RefusalError): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(refusal.metadata)) {
    if (name.startsWith("x-ratelimit-")) headers[name] = value;
  }
  // A job was made. Without an Idempotency-Key a repeat would make, and pay for, another one.
  if (refusal.metadata.job_id !== undefined) headers["x-should-retry"] = "false";
  // It failed and was charged, and so would be a repeat.
  if (refusal.metadata.cost !== undefined) {
    headers["x-should-retry"] = "false";
    headers[costHeader] = refusal.metadata.cost;
  }
  if (refusal.metadata.allow !== undefined) headers.allow = refusal.metadata.allow;
  if (refusal.metadata.size_bytes !== undefined) {
    headers["content-range"] = `bytes */${refusal.metadata.size_bytes}`;
  }
  return headers;
}

function isRetryable({ reason, metadata }: RefusalError): boolean {
  return retryable.has(reason) || metadata.retry_after_ms !== undefined;
}

function retryAfter(refusal: RefusalError): string {
  const ms = Number(refusal.metadata.retry_after_ms ?? 1_000);
  return String(Math.max(1, Math.ceil((Number.isFinite(ms) ? ms : 1_000) / 1_000)));
}

function parsed(json: string | undefined): unknown {
  if (json === undefined) return undefined;
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
