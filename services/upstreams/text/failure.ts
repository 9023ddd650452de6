// Decides what an upstream's error means: for the caller, for the operator, and for whether another upstream is tried.

import { overloadedMark } from "#common/words/messages-errors.ts";
import { ErrorReason, type Reason, RefusalError } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import { noPlaceInTime } from "#kit/share/fair-share.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import { isEmptyAccount, isPolicyCode } from "../call.ts";
import type { Outcome } from "../pools/outcomes.ts";
import type { ReportedUsage, TextOperation } from "./port.ts";

/** The reason why an upstream gave no answer. */
export type FailureKind =
  /** No connection, or it broke before the first event, or before the JSON answer. */
  | "unreachable"
  /** The connection broke within a JSON answer, which was generated then. */
  | "cut"
  /** No place at the upstream came free in time, of those that genmesh may use. */
  | "full"
  /** It was not asked, because it rests and no other may be asked. */
  | "resting"
  /** 429, 529, or a word for being overloaded. */
  | "rate_limited"
  /** This one request is larger than the operator's rate or credit there. Smaller ones are served. */
  | "over_limit"
  /** The operator's account at the upstream is empty: 402, or an error that says that. */
  | "account_empty"
  /** The upstream does not accept the key: 401, 403 of the key. */
  | "key_refused"
  /** The upstream does not serve the region that it is asked from. */
  | "region_refused"
  /** The upstream does not have the model: 404. */
  | "model_missing"
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
  /** All other refusals that genmesh does not explain. */
  | "denied"
  /** The upstream's reply is not an answer, or is an error instead of the first event. */
  | "garbage"
  /** The answer is above a bound of genmesh. The upstream itself may have answered well. */
  | "too_large"
  /** The upstream does not have the operation. */
  | "incapable"
  /** The upstream's key is not in its variable, or not in its file. */
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
  /** Milliseconds for which the upstream asked to be left alone. */
  retryAfterMs: number | undefined;

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

  /** Its outcome for the lane. A try that reported usage may be paid for, so that no other lane is asked. */
  get outcome(): Outcome {
    return this.usage ? "perhaps_paid" : outcomeOf[this.kind];
  }
}

/** The outcome for the lane, of each kind of failure. */
const outcomeOf: Readonly<Record<FailureKind, Outcome>> = {
  unreachable: "failed",
  cut: "perhaps_paid",
  full: "full",
  resting: "full",
  rate_limited: "limited",
  over_limit: "over_limit",
  account_empty: "account_empty",
  key_refused: "key_refused",
  region_refused: "region_refused",
  model_missing: "model_missing",
  server_error: "failed",
  timeout: "perhaps_paid",
  invalid_request: "refused",
  policy: "refused",
  context_length: "refused",
  denied: "open",
  garbage: "failed",
  too_large: "open",
  incapable: "open",
  misconfigured: "key_refused",
};

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

/** The field that holds the input of an operation. */
export function inputParamOf(operation: TextOperation): "input" | "messages" {
  return operation === "chat" || operation === "messages" ? "messages" : "input";
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
    case "full": {
      const { reason, message, metadata } = noPlaceInTime(cause);
      return new RefusalError(reason, { message, metadata: { ...metadata, ...overloaded }, cause });
    }
    case "resting":
      return new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, {
        metadata: { ...timeAgain(failure), ...overloaded },
        cause,
      });
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
        {
          metadata: {
            ...timeAgain(failure),
            ...(failure.kind === "rate_limited" ? overloaded : {}),
          },
          cause,
        },
      );
  }
}

/** For callers of Messages, who are told apart what passes by itself. */
const overloaded = { [overloadedMark]: "true" };

function timeAgain({ retryAfterMs }: UpstreamFailure): Record<string, string> {
  return retryAfterMs === undefined ? {} : { retry_after_ms: String(Math.ceil(retryAfterMs)) };
}

/** Codes and types with which servers report that the input is too long: OpenAI, llama.cpp, OpenRouter. */
const contextCodes = new Set([
  "context_length_exceeded",
  "context_window_exceeded",
  "exceed_context_size_error",
]);
/** The words of vLLM, SGLang, Ollama and Anthropic for it. They have no code of their own. */
const contextWords = /\bcontext (?:length|limit|size|window)\b|^prompt is too long\b/i;

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
  if (isContentRefusal(error)) return new UpstreamFailure("policy");
  if (isContextError(error)) return new UpstreamFailure("context_length");
  const told = [error.code, error.status, error.status_code].map(Number);
  const status = told.find((one) => one >= 400 && one <= 599);
  const kind = kindOfOperators(status ?? 200, error);
  if (kind) return new UpstreamFailure(kind);
  if (isNamed(error, limitWords)) return new UpstreamFailure("rate_limited");
  if (isNamed(error, serverWords)) return new UpstreamFailure("server_error");
  if (isNamed(error, requestWords)) return new UpstreamFailure("invalid_request");
  if (status === undefined) return new UpstreamFailure("garbage");
  return new UpstreamFailure(status >= 500 ? "server_error" : "denied");
}

function isNamed({ code, type }: JsonObject, names: ReadonlySet<unknown>): boolean {
  return names.has(code) || names.has(type);
}

/** Codes and types that servers use for 429, 529 and 5xx. */
const limitWords: ReadonlySet<unknown> = new Set([
  "overloaded_error",
  "rate_limit_error",
  "rate_limit_exceeded",
  "too_many_requests",
]);
const serverWords: ReadonlySet<unknown> = new Set([
  "api_error",
  "internal_error",
  "internal_server_error",
  "server_error",
  "service_unavailable",
  "timeout_error",
]);
/** Words for a fault of the request itself, in an error without a status. */
const requestWords: ReadonlySet<unknown> = new Set(["invalid_prompt", "invalid_request_error"]);

/**
 * The failure that an HTTP error means. `error` is the body's `error` object where it has one, and empty where the body is no JSON.
 * `body` is the caller's own body: a field is named only where the caller sent it.
 */
export function failureOfStatus(
  status: number,
  error: JsonObject,
  body: JsonObject,
): UpstreamFailure {
  const isRefusal = isContentRefusal(error);
  if ((status === 400 || status === 403 || status === 422) && isRefusal) {
    return new UpstreamFailure("policy", { status });
  }
  const kind = kindOfOperators(status, error);
  if (kind) return new UpstreamFailure(kind, { status });
  if (status >= 500) return new UpstreamFailure("server_error", { status });
  if ((status === 400 || status === 413 || status === 422) && isContextError(error)) {
    return new UpstreamFailure("context_length", { status });
  }
  if (status === 400 || status === 422) {
    const param = callersField(error.param, body);
    return new UpstreamFailure("invalid_request", { status, ...(param ? { param } : {}) });
  }
  return new UpstreamFailure("denied", { status });
}

/** The words of xAI (403) and Anthropic (400) for a refusal for the content. Their codes are those of other faults. */
const contentWords =
  /^(?:content violates usage guidelines|output blocked by content filtering policy)/i;

/** Is it a refusal for the content? OpenRouter says so with 403, and names its reasons or the refused part in `metadata`. */
function isContentRefusal(error: JsonObject): boolean {
  const { code, type, metadata } = error;
  if ([code, type].some(isPolicyCode) || contentWords.test(messageOf(error))) return true;
  return isJsonObject(metadata) && ("reasons" in metadata || "flagged_input" in metadata);
}

/**
 * The kind of a failure that another key or upstream may not have: of the operator's account, key or rate there, or of a model that is
 * not there. Undefined for all others. A message counts by its beginning alone, because what follows may be the caller's words.
 */
function kindOfOperators(status: number, error: JsonObject): FailureKind | undefined {
  if ((status === 402 || status === 429) && overWords.test(messageOf(error))) return "over_limit";
  if (status < 500 && isOutOfMoney(status, error)) return "account_empty";
  if (status === 429 || status === 529) return "rate_limited";
  if (status >= 500) return undefined;
  const says = (pattern: RegExp) => pattern.test(messageOf(error));
  if (status === 400 && says(locationWords)) return "region_refused";
  const isEmpty = Object.keys(error).length === 0;
  // A tool may name a model too, which its caller chose.
  const isOfModel = (error.param ?? "model") === "model" || error.param === "";
  if (isOfModel && isNamed(error, modelWords)) return "model_missing";
  // A server that has other models says so. One whose answer is no JSON has no such path.
  if (status === 404 && isOfModel && (isEmpty || says(missingWords))) return "model_missing";
  if (status === 401 || isNamed(error, keyWords)) return "key_refused";
  // A firewall before the upstream refuses texts with 403 and a page.
  if (status !== 403 || isEmpty) return undefined;
  if (saysIn(error, regionWords)) return "region_refused";
  // A caller could make such refusals. They must not take the key from all others.
  return saysIn(error, matterWords) ? undefined : "key_refused";
}

/** Words of OpenAI and Anthropic (403), and of Google (400), for a region that they do not serve. */
const regionWords = /\b(?:countr(?:y|ies)|regions?|territor(?:y|ies))\b/i;
const locationWords = /^user location is not supported\b/i;
/** Words for a refusal of what the caller sent. */
const matterWords =
  /\b(?:content|prompt|input|moderation|safety|unsafe|harmful|guidelines|nsfw)\b/i;
/** Characters of a message that are looked at. Those after them may be the caller's words. */
const messageBeginning = 200;

/** Does an error's code, its type or the beginning of its message say this? */
function saysIn(error: JsonObject, words: RegExp): boolean {
  const names = [error.code, error.type].filter((one) => typeof one === "string");
  const told = [...names, messageOf(error).slice(0, messageBeginning)].join(" ");
  return words.test(told.replaceAll("_", " "));
}

/** OpenRouter finds no endpoint for a model, or none "that support" a part of the request. The second one is the caller's fault. */
const missingWords = /^(?:the )?(?:requested )?models?\b|^no endpoints found for\b/i;
/** The words of OpenAI (429) and OpenRouter (402) for a request that is too large for a limit which has room for smaller ones. */
const overWords =
  /^request too large for\b|^this request requires more credits, or fewer max_tokens\. you requested up to \d+ tokens, but can only afford [1-9]/i;
const modelWords: ReadonlySet<unknown> = new Set(["model_not_found"]);
const keyWords: ReadonlySet<unknown> = new Set(["authentication_error", "invalid_api_key"]);

/** The words of Anthropic (400) and fal (403), which have no code for it. */
const moneyWords =
  /^(?:your credit balance is too low|you have reached your specified api usage limits|(?:user is locked\. reason: )?exhausted balance)/i;

function isOutOfMoney(status: number, error: JsonObject): boolean {
  if (isEmptyAccount(status, [error.code, error.type])) return true;
  return (status === 400 || status === 403) && moneyWords.test(messageOf(error));
}

function messageOf({ message, detail, error }: JsonObject): string {
  return [message, detail, error].find((one) => typeof one === "string") ?? "";
}

/** The first name of a path, where the caller sent a field of that name and genmesh did not replace it. */
function callersField(param: unknown, body: JsonObject): string | undefined {
  if (typeof param !== "string") return undefined;
  const field = /^[a-z_]{1,64}/.exec(param)?.[0];
  const isOurs = field === "model" || field === "store" || field === "instructions";
  return field !== undefined && !isOurs && Object.hasOwn(body, field) ? field : undefined;
}
