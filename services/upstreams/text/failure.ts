import { ErrorReason, type Reason, RefusalError } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { noPlaceInTime } from "#kit/share/fair-share.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import { isEmptyAccount, isPolicyCode } from "../call.ts";
import type { ReportedUsage } from "./port.ts";

/** The reason why an upstream gave no answer. */
export type FailureKind =
  /** No connection, or it broke before the first event, or before the end of the JSON answer. */
  | "unreachable"
  /** No place at the upstream came free in time, of those that genmesh may use. */
  | "full"
  /** 429. */
  | "rate_limited"
  /** The operator's account at the upstream is empty: 402, or a code that says that. */
  | "account_empty"
  /** 5xx. */
  | "server_error"
  /** Time ran out. */
  | "timeout"
  /** 400 or 422: the request is wrong. */
  | "invalid_request"
  /** Refused for its content. */
  | "policy"
  /** The input is longer than the model's context. */
  | "context_length"
  /** 401, 403, 404 and all other refusals that genmesh does not explain. */
  | "denied"
  /** The upstream's reply is not an answer, or is an error instead of the first event. */
  | "garbage"
  /** The answer is above a bound of genmesh. The upstream itself may have answered well. */
  | "too_large"
  /** The upstream does not have the operation. */
  | "incapable"
  /** The variable of the upstream's key is not set. */
  | "misconfigured";

/** An upstream gave no answer, and no output came before. The error holds nothing of the upstream's own text. */
export class UpstreamFailure extends Error {
  override readonly name = "UpstreamFailure";
  readonly kind: FailureKind;
  /** HTTP status, where there was one. */
  readonly status: number | undefined;
  /** For `invalid_request`: the top-level field of the caller's body that the upstream named. */
  readonly param: string | undefined;
  /** For `unreachable`: the time to connect ran out. */
  readonly timedOut: boolean;
  /** Usage that the upstream reported nevertheless. It is charged. */
  usage: ReportedUsage | undefined;

  constructor(
    kind: FailureKind,
    details: { status?: number; param?: string; timedOut?: boolean; cause?: unknown } = {},
  ) {
    super(`upstream: ${kind}`, { cause: details.cause });
    this.kind = kind;
    this.status = details.status;
    this.param = details.param;
    this.timedOut = details.timedOut ?? kind === "timeout";
  }

  /** May the next upstream be tried? Only where this one was not reached or not asked, or answered 429 or 5xx. */
  get mayFallBack(): boolean {
    if (this.status === 429) return true;
    return ["unreachable", "full", "rate_limited", "server_error"].includes(this.kind);
  }
}

/** The failure that an error of a lower layer means. Undefined where the error is not the upstream's. */
export function failureOf(error: unknown): UpstreamFailure | undefined {
  if (error instanceof UpstreamFailure) return error;
  if (!(error instanceof UpstreamError)) return undefined;
  if (error.kind === "full") return new UpstreamFailure("full", { cause: error });
  if (error.kind === "timeout") return new UpstreamFailure("timeout", { cause: error });
  if (error.kind === "misconfigured") return new UpstreamFailure("misconfigured", { cause: error });
  if (error.kind === "too_large") return new UpstreamFailure("too_large", { cause: error });
  return new UpstreamFailure("unreachable", { timedOut: error.timedOut, cause: error });
}

/** The refusal that the caller gets, in the words of genmesh. */
export function refusalOf(
  failure: UpstreamFailure,
  modelId: string,
  inputParam: "input" | "messages" = "input",
): RefusalError {
  const cause = failure;
  switch (failure.kind) {
    case "invalid_request":
      return new RefusalError(ErrorReason.INVALID_VALUE, {
        message: failure.param
          ? `The model does not accept the value of '${failure.param}'.`
          : "The model does not accept a value in this request.",
        ...(failure.param ? { param: failure.param } : {}),
        cause,
      });
    case "full":
      return noPlaceInTime(cause);
    case "policy":
      return new RefusalError(ErrorReason.CONTENT_POLICY_VIOLATION, { cause });
    case "context_length":
      return new RefusalError(ErrorReason.CONTEXT_LENGTH_EXCEEDED, {
        param: inputParam,
        cause,
      });
    case "incapable":
      return new RefusalError(ErrorReason.MODEL_NOT_RESPONSES_CAPABLE, {
        metadata: { model: modelId },
        param: "model",
        cause,
      });
    default:
      return new RefusalError(
        failure.timedOut ? ErrorReason.UPSTREAM_TIMEOUT : ErrorReason.MODEL_REQUEST_FAILED,
        { cause },
      );
  }
}

/** Codes and types with which servers report that the input is too long: OpenAI, llama.cpp, OpenRouter. */
const contextCodes = new Set([
  "context_length_exceeded",
  "context_window_exceeded",
  "exceed_context_size_error",
]);
/** The words of vLLM, SGLang and Ollama for it. They have no code of their own. */
const contextWords = /\bcontext (?:length|size|window)\b/i;

/** Does an upstream's error object report that the input is too long for the model? */
export function isContextError({ code, type, message }: JsonObject): boolean {
  if ([code, type].some((one) => typeof one === "string" && contextCodes.has(one))) return true;
  return typeof message === "string" && contextWords.test(message);
}

/** The reason that the caller gets where the upstream's error comes within an answer. */
export function reasonOfError(error: JsonObject): Reason {
  if (isPolicyCode(error.code)) return ErrorReason.CONTENT_POLICY_VIOLATION;
  return isContextError(error)
    ? ErrorReason.CONTEXT_LENGTH_EXCEEDED
    : ErrorReason.MODEL_REQUEST_FAILED;
}

/** The failure that an error instead of an answer means, with any HTTP status. Routers put the real status into the error. */
export function failureOfError(error: JsonObject): UpstreamFailure {
  const words = [error.code, error.type];
  if (words.some(isPolicyCode)) return new UpstreamFailure("policy");
  if (isContextError(error)) return new UpstreamFailure("context_length");
  const told = [error.code, error.status, error.status_code].map(Number);
  const isTold = (holds: (status: number) => boolean) => told.some(holds);
  const isNamed = (names: ReadonlySet<unknown>) => words.some((word) => names.has(word));
  if (isTold((status) => status === 429) || isNamed(limitWords)) {
    return new UpstreamFailure("rate_limited");
  }
  const isTheirs = isTold((status) => status >= 500 && status <= 599) || isNamed(serverWords);
  return new UpstreamFailure(isTheirs ? "server_error" : "garbage");
}

/** Codes and types that servers use for 429 and 5xx. */
const limitWords: ReadonlySet<unknown> = new Set([
  "rate_limit_error",
  "rate_limit_exceeded",
  "too_many_requests",
]);
const serverWords: ReadonlySet<unknown> = new Set([
  "internal_error",
  "internal_server_error",
  "overloaded_error",
  "server_error",
  "service_unavailable",
]);

/**
 * The failure that an HTTP error means. `error` is the body's `error` object where it has one. `body` is the caller's own body: a field
 * is named only where the caller sent it.
 */
export function failureOfStatus(
  status: number,
  error: JsonObject,
  body: JsonObject,
): UpstreamFailure {
  if (status < 500 && isEmptyAccount(status, [error.code, error.type])) {
    return new UpstreamFailure("account_empty", { status });
  }
  if (status === 429) return new UpstreamFailure("rate_limited", { status });
  if (status >= 500) return new UpstreamFailure("server_error", { status });
  const isRefusal = [error.code, error.type].some(isPolicyCode);
  if ((status === 400 || status === 403 || status === 422) && isRefusal) {
    return new UpstreamFailure("policy", { status });
  }
  if ((status === 400 || status === 413 || status === 422) && isContextError(error)) {
    return new UpstreamFailure("context_length", { status });
  }
  if (status === 400 || status === 422) {
    const param = callersField(error.param, body);
    return new UpstreamFailure("invalid_request", { status, ...(param ? { param } : {}) });
  }
  return new UpstreamFailure("denied", { status });
}

/** The first name of a path, where the caller sent a field of that name and genmesh did not replace it. */
function callersField(param: unknown, body: JsonObject): string | undefined {
  if (typeof param !== "string") return undefined;
  const field = /^[a-z_]{1,64}/.exec(param)?.[0];
  const isOurs = field === "model" || field === "store" || field === "instructions";
  return field !== undefined && !isOurs && Object.hasOwn(body, field) ? field : undefined;
}
