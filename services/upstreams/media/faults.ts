// The errors of exchanges with upstreams of media, and what each of them means for a job: failed, not taken, or worth another
// try.

import { BuiltinError } from "#common/words/builtin-models.ts";
import { ImageError } from "#kit/images/index.ts";
import { OutsideError } from "#kit/outside/index.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import { isPolicyCode } from "../call.ts";
import { GenerationError, type GenerationFault, NotTakenError } from "./port.ts";

/** An HTTP answer that is no success. It holds nothing of the upstream's own text. */
export class StatusError extends Error {
  override readonly name = "StatusError";
  readonly status: number;
  /** The error's code in the form for logs (`knownCode`). It also shows a refusal for content. */
  readonly code: string | undefined;
  /** The wait that `Retry-After` asks for, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** The operator's account there has no money left. */
  readonly isAccountEmpty: boolean;
  /**
   * Was the request charged in spite of the error? Another deployment charges speech that it could not keep, and would charge a repeat,
   * too.
   */
  readonly isCharged: boolean;
  /** The upstream answers that the result is still being made. */
  readonly isTooEarly: boolean;

  constructor(
    status: number,
    details: {
      code?: string;
      retryAfterMs?: number;
      isAccountEmpty?: boolean;
      isCharged?: boolean;
      isTooEarly?: boolean;
    } = {},
  ) {
    super(`upstream answered ${status}`);
    this.status = status;
    this.code = details.code;
    this.retryAfterMs = details.retryAfterMs;
    this.isAccountEmpty = details.isAccountEmpty ?? false;
    this.isCharged = details.isCharged ?? false;
    this.isTooEarly = details.isTooEarly ?? false;
  }
}

/** No connection could be made, or none was free in time. No byte of the request was sent. */
export class UnconnectedError extends Error {
  override readonly name = "UnconnectedError";
}

/** The upstream's key is not in its variable, or not in its file. No byte of the request was sent. */
export class KeyMissingError extends GenerationError {
  constructor() {
    super("failed", "the upstream's key is not set");
  }
}

/** A success whose body is no JSON object, or lacks the needed field. */
export class UnreadableError extends Error {
  override readonly name = "UnreadableError";
}

/** An output that ends before its own structure does, although its sender ended it correctly. */
export class CutShortError extends GenerationError {
  constructor(message: string) {
    super("failed", message);
  }
}

/** A final error: refused, failed, or not the expected output. */
export function failed(message: string, options?: ErrorOptions): GenerationError {
  return new GenerationError("failed", message, options);
}

/** An error after which another attempt may succeed. */
export function unknown(message: string, options?: ErrorOptions): GenerationError {
  return new GenerationError("unknown", message, options);
}

/** Statuses that leave the outcome open, or that pass: 408, 409, 425, 429 and 5xx. */
export function isPassing(status: number): boolean {
  return status >= 500 || [408, 409, 425, 429].includes(status);
}

/** Was the request surely not taken, so that a repeat starts nothing twice? */
export function isUnsent(error: unknown): boolean {
  if (error instanceof StatusError) return error.status === 429 && !error.isAccountEmpty;
  return error instanceof UnconnectedError;
}

/** Statuses of an upstream that refuses the configuration: its key, the key's rights, the model. */
const denied: readonly number[] = [401, 403, 404];

/** The job's error for an upstream's answer, or its silence, to a request that begins a generation. */
export function errorOfBeginning(
  error: unknown,
  { takesKey }: { takesKey: boolean },
): GenerationError | undefined {
  if (error instanceof UnconnectedError) {
    return new NotTakenError("unreachable", { isCertain: true, cause: error });
  }
  if (error instanceof KeyMissingError) {
    return new NotTakenError("denied", { isCertain: true, cause: error });
  }
  if (!(error instanceof StatusError)) return undefined;
  const { status, code, retryAfterMs, isAccountEmpty } = error;
  const details = { retryAfterMs, cause: error };
  if (isAccountEmpty) return new NotTakenError("account_empty", { ...details, isCertain: true });
  if (denied.includes(status) && !isPolicyCode(code)) {
    return new NotTakenError("denied", { ...details, isCertain: true });
  }
  if (status === 429)
    return new NotTakenError("too_many_requests", { ...details, isCertain: true });
  // Another deployment answers this also where it has written the job down, and goes on with it.
  if (status === 503) return new NotTakenError("unavailable", { ...details, isCertain: !takesKey });
  if (status !== 500 || takesKey) return undefined;
  return new GenerationError("broke_off", error.message, { cause: error });
}

/** No generation was requested yet. An upstream that fails in a step before that has not begun one, for any reason. */
export function errorBeforeBeginning(error: unknown): NotTakenError | undefined {
  const refused = errorOfBeginning(error, { takesKey: false });
  if (refused instanceof NotTakenError) return refused;
  if (!isWorthRepeating(error)) return undefined;
  const refusal = error instanceof StatusError ? "unavailable" : "unreachable";
  return new NotTakenError(refusal, { isCertain: true, cause: error });
}

/** Could a repeat of a harmless request succeed? */
export function isWorthRepeating(error: unknown): boolean {
  if (error instanceof StatusError) {
    return (isPassing(error.status) || error.isTooEarly) && !error.isCharged;
  }
  if (error instanceof UnconnectedError) return true;
  if (error instanceof UpstreamError) return error.kind !== "too_large";
  if (error instanceof UnreadableError) return true;
  if (error instanceof ImageError) return error.kind === "busy" || error.kind === "unavailable";
  return error instanceof OutsideError && faultOfOutside(error) === "unknown";
}

/** Statuses with which stores answer for a file that does not exist yet, or may not be read yet. */
const absent: readonly number[] = [403, 404];

/** May a file that an answer has just named exist, or be complete, a little later? */
export function isLateFile(error: unknown): boolean {
  if (error instanceof CutShortError) return true;
  if (error instanceof ImageError) return error.kind === "corrupt";
  if (error instanceof StatusError)
    return absent.includes(error.status) && !isPolicyCode(error.code);
  return error instanceof OutsideError && absent.includes(Number(error.detail));
}

/** Is a task unknown to its upstream? An upstream that has just named a task may know it at the next look. */
export function isUnknownTask(error: unknown): boolean {
  return error instanceof StatusError && error.status === 404;
}

/**
 * The job's error for an error of any layer. `lookingAfter`: the task runs at the upstream already. A key that is refused then may be
 * one that is being changed, so the task is not given up.
 */
export function toGenerationError(error: unknown, lookingAfter = false): GenerationError {
  if (error instanceof GenerationError) return error;
  const options = { cause: error };
  if (error instanceof UnreadableError) {
    return new GenerationError(lookingAfter ? "unknown" : "failed", error.message, options);
  }
  if (error instanceof StatusError) {
    return new GenerationError(faultOfStatus(error, lookingAfter), error.message, options);
  }
  if (error instanceof UnconnectedError) return unknown(error.message, options);
  if (error instanceof UpstreamError) {
    return new GenerationError(
      error.kind === "too_large" ? "failed" : "unknown",
      error.message,
      options,
    );
  }
  if (error instanceof OutsideError) {
    return new GenerationError(faultOfOutside(error), `outside: ${error.message}`, options);
  }
  if (error instanceof ImageError) {
    const isOurs = error.kind === "busy" || error.kind === "unavailable";
    return new GenerationError(isOurs ? "unknown" : "failed", `output: ${error.message}`, options);
  }
  if (error instanceof BuiltinError) return failed(`built in: ${error.message}`, options);
  // A size or a length that no such video or image can have.
  if (error instanceof RangeError) return failed("the request is out of range", options);
  return unknown("the attempt broke off", options);
}

/** Did an answer, or a download, exceed its size limit? */
export function isTooLarge(error: unknown): boolean {
  const found = error instanceof GenerationError ? error.cause : error;
  const isOfSize = found instanceof UpstreamError || found instanceof OutsideError;
  return isOfSize && found.kind === "too_large";
}

function faultOfStatus(
  { status, code, isTooEarly }: StatusError,
  lookingAfter: boolean,
): GenerationFault {
  if (isPassing(status) || isTooEarly) return "unknown";
  if (isPolicyCode(code)) return "content_policy";
  return status === 401 && lookingAfter ? "unknown" : "failed";
}

function faultOfOutside({ kind, detail }: OutsideError): GenerationFault {
  if (kind === "unreachable" || kind === "timeout") return "unknown";
  // The compressed data has broken off.
  if (detail === "Z_BUF_ERROR") return "unknown";
  return kind === "bad_status" && isPassing(Number(detail)) ? "unknown" : "failed";
}
