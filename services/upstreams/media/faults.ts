import { BuiltinError } from "#common/words/builtin-models.ts";
import { ImageError } from "#kit/images/index.ts";
import { OutsideError } from "#kit/outside/index.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import { isPolicyCode } from "../call.ts";
import { GenerationError, type GenerationFault, NotTakenError } from "./port.ts";

/** An HTTP answer that is no success. Holds nothing of upstream's own text. */
export class StatusError extends Error {
  override readonly name = "StatusError";
  readonly status: number;
  /** The error's code as a log may have it (`knownCode`); also tells a refusal for content. */
  readonly code: string | undefined;
  /** What `Retry-After` asks for, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** The operator's account there has run empty. */
  readonly isAccountEmpty: boolean;
  /** It was charged all the same, as another deployment charges speech that it could not keep: a repeat would be, too. */
  readonly isCharged: boolean;
  /** The upstream says that what was asked for is still being made. */
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

/** No connection came about, or none was free in time: nothing of the request has left us. */
export class UnconnectedError extends Error {
  override readonly name = "UnconnectedError";
}

/** The variable of the upstream's key is not set: nothing of the request has left us. */
export class KeyMissingError extends GenerationError {
  constructor() {
    super("failed", "the upstream's key is not set");
  }
}

/** A success whose body is no JSON object, or lacks what it is for. */
export class UnreadableError extends Error {
  override readonly name = "UnreadableError";
}

/** An output that ends before its own structure does, though its sender ended it in order. */
export class CutShortError extends GenerationError {
  constructor(message: string) {
    super("failed", message);
  }
}

/** For good: refused, failed, or not what it should be. */
export function failed(message: string, options?: ErrorOptions): GenerationError {
  return new GenerationError("failed", message, options);
}

/** Another attempt may do better. */
export function unknown(message: string, options?: ErrorOptions): GenerationError {
  return new GenerationError("unknown", message, options);
}

/** Statuses that leave the outcome open, or that pass: 408, 409, 425, 429 and 5xx. */
export function isPassing(status: number): boolean {
  return status >= 500 || [408, 409, 425, 429].includes(status);
}

/** Was the request certainly not taken up, so that a repeat starts nothing twice? */
export function isUnsent(error: unknown): boolean {
  if (error instanceof StatusError) return error.status === 429 && !error.isAccountEmpty;
  return error instanceof UnconnectedError;
}

/** Statuses of an upstream that denies what is configured: its key, what the key may do, the model. */
const denied: readonly number[] = [401, 403, 404];

/** What an upstream's answer, or its silence, to a request that begins a generation says of the job. */
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
  // Another deployment says so too where it has written the job down, and goes on with it.
  if (status === 503) return new NotTakenError("unavailable", { ...details, isCertain: !takesKey });
  if (status !== 500 || takesKey) return undefined;
  return new GenerationError("broke_off", error.message, { cause: error });
}

/** No generation was asked for yet: an upstream that does not take what comes before, for any reason, has not begun one. */
export function errorBeforeBeginning(error: unknown): NotTakenError | undefined {
  const refused = errorOfBeginning(error, { takesKey: false });
  if (refused instanceof NotTakenError) return refused;
  if (!isWorthRepeating(error)) return undefined;
  const refusal = error instanceof StatusError ? "unavailable" : "unreachable";
  return new NotTakenError(refusal, { isCertain: true, cause: error });
}

/** Could a repeat of something harmless succeed? */
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

/** Statuses by which stores answer for a file that is not there yet, or may not be read yet. */
const absent: readonly number[] = [403, 404];

/** May a file that an answer has just named be there, or be whole, a little later? */
export function isLateFile(error: unknown): boolean {
  if (error instanceof CutShortError) return true;
  if (error instanceof ImageError) return error.kind === "corrupt";
  if (error instanceof StatusError)
    return absent.includes(error.status) && !isPolicyCode(error.code);
  return error instanceof OutsideError && absent.includes(Number(error.detail));
}

/** Does an upstream not know a task? One that it has just named it may know at the next look. */
export function isUnknownTask(error: unknown): boolean {
  return error instanceof StatusError && error.status === 404;
}

/**
 * What an error of any layer means for the job. `lookingAfter` says that the task runs upstream already: a key that is
 * refused then may be a key that is being changed, so the task is not given up.
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
  // A size or a length that no such video or picture can have.
  if (error instanceof RangeError) return failed("the request is out of range", options);
  return unknown("the attempt broke off", options);
}

/** Did an answer, or a download, pass the size that is taken of it? */
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
  // What was compressed has broken off.
  if (detail === "Z_BUF_ERROR") return "unknown";
  return kind === "bad_status" && isPassing(Number(detail)) ? "unknown" : "failed";
}
