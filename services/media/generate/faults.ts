import { ImageError } from "#kit/images/index.ts";
import { OutsideError } from "#kit/outside/index.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import { RenderError } from "../builtin/index.ts";
import { GenerationError, type GenerationFault, NotTakenError } from "./port.ts";

/** An HTTP answer that is no success. Holds nothing of upstream's own text. */
export class StatusError extends Error {
  override readonly name = "StatusError";
  readonly status: number;
  /** `error.code` where it looks like one; for logs and to tell a refusal for content. */
  readonly code: string | undefined;
  /** What `Retry-After` asks for, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(status: number, details: { code?: string; retryAfterMs?: number } = {}) {
    super(`upstream answered ${status}`);
    this.status = status;
    this.code = details.code;
    this.retryAfterMs = details.retryAfterMs;
  }
}

/** No connection came about, or none was free in time: nothing of the request has left us. */
export class UnconnectedError extends Error {
  override readonly name = "UnconnectedError";
}

/** A success whose body is no JSON object, or lacks what it is for. */
export class UnreadableError extends Error {
  override readonly name = "UnreadableError";
}

/** For good: refused, failed, or not what it should be. */
export function failed(message: string, options?: ErrorOptions): GenerationError {
  return new GenerationError("failed", message, options);
}

/** Another attempt may do better. */
export function unknown(message: string, options?: ErrorOptions): GenerationError {
  return new GenerationError("unknown", message, options);
}

/** Codes by which upstreams say that they refused for the content. */
const policyCodes: ReadonlySet<string> = new Set([
  "content_policy_violation",
  "content_filter",
  "contentfilter",
  "image_content_policy_violation",
  "input_moderation",
  "moderation_blocked",
  "output_moderation",
  "responsibleaipolicyviolation",
  "safety_violation",
  "sentinel_block",
]);

/** Does an error code mean a refusal for its content? */
export function isPolicyCode(code: unknown): boolean {
  return typeof code === "string" && policyCodes.has(code.toLowerCase());
}

/** Statuses after which nobody knows, or which pass: 408, 409, 425, 429 and 5xx. */
export function isPassing(status: number): boolean {
  return status >= 500 || [408, 409, 425, 429].includes(status);
}

/** Was the request certainly not taken up, so that a repeat starts nothing twice? */
export function isUnsent(error: unknown): boolean {
  if (error instanceof StatusError) return error.status === 429;
  return error instanceof UnconnectedError;
}

/** What an upstream's answer, or its silence, to a request that begins a generation says of the job. */
export function errorOfBeginning(
  error: unknown,
  { takesKey }: { takesKey: boolean },
): GenerationError | undefined {
  if (error instanceof UnconnectedError) {
    return new NotTakenError("unreachable", { isCertain: true, cause: error });
  }
  if (!(error instanceof StatusError)) return undefined;
  const { status, retryAfterMs } = error;
  const details = { retryAfterMs, cause: error };
  if (status === 429)
    return new NotTakenError("too_many_requests", { ...details, isCertain: true });
  // Another deployment says so too where it has written the job down, and goes on with it.
  if (status === 503) return new NotTakenError("unavailable", { ...details, isCertain: !takesKey });
  if (status !== 500 || takesKey) return undefined;
  return new GenerationError("broke_off", error.message, { cause: error });
}

/** Could a repeat of something harmless succeed? */
export function isWorthRepeating(error: unknown): boolean {
  if (error instanceof StatusError) return isPassing(error.status);
  if (error instanceof UnconnectedError) return true;
  if (error instanceof UpstreamError) return error.kind !== "too_large";
  if (error instanceof UnreadableError) return true;
  if (error instanceof ImageError) return error.kind === "busy" || error.kind === "unavailable";
  return error instanceof OutsideError && faultOfOutside(error) === "unknown";
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
  if (error instanceof RenderError) {
    const fault = error.failure === "failed" ? "failed" : "unknown";
    return new GenerationError(fault, `renderer: ${error.message}`, options);
  }
  // A size or a length that no such video or picture can have.
  if (error instanceof RangeError) return failed("the request is out of range", options);
  return unknown("the attempt broke off", options);
}

function faultOfStatus({ status, code }: StatusError, lookingAfter: boolean): GenerationFault {
  if (isPassing(status)) return "unknown";
  if (isPolicyCode(code)) return "content_policy";
  return status === 401 && lookingAfter ? "unknown" : "failed";
}

function faultOfOutside({ kind, detail }: OutsideError): GenerationFault {
  if (kind === "unreachable" || kind === "timeout") return "unknown";
  return kind === "bad_status" && isPassing(Number(detail)) ? "unknown" : "failed";
}
