// Refusals: the errors that services throw, and that the edge and the wire show by their reason. All other errors count as faults
// of our own. The facts of each reason are in `error-registry.ts`.

import type { Code } from "@connectrpc/connect";
import { ErrorReason } from "#proto/genmesh/common/v1/error_reason_pb.ts";
import { registry } from "./error-registry.ts";

export { ErrorReason } from "#proto/genmesh/common/v1/error_reason_pb.ts";

/** `error.type` of the public API. */
export type ErrorType =
  | "invalid_request_error"
  | "authentication_error"
  | "insufficient_quota"
  | "permission_error"
  | "not_found_error"
  | "idempotency_error"
  | "rate_limit_error"
  | "server_error";

/** The registry's facts about a reason. */
export interface ErrorRow {
  /** Code of Connect and gRPC. */
  rpc: Code;
  /** HTTP status at the edge. For `audience: "operator"`: the status in case the error reaches the edge. */
  status: number;
  type: ErrorType;
  /** Default text; `{name}` is replaced from the metadata. */
  message: string;
  /**
   * `public`: in the tables of the API. `console`: answers of the console alone. `job`: only in a failed job's `error`.
   * `operator`: internal calls only.
   */
  audience: "public" | "console" | "job" | "operator";
}

/** A reason that a refusal can have. */
export type Reason = Exclude<
  (typeof ErrorReason)[keyof typeof ErrorReason],
  typeof ErrorReason.UNSPECIFIED
>;

/** Extra facts of a refusal: everything dynamic of its text, by name. */
export interface RefusalDetails {
  /** Replaces the registry's text. Must never hold a caller's content or an upstream's own words. */
  message?: string;
  /** Path of the offending field, e.g. `input[0].content[1].image_url`. */
  param?: string;
  /** Further facts: `model`, `available_options` (JSON), `retry_after_ms`, … */
  metadata?: Record<string, string>;
  /** The underlying error, for our own log. */
  cause?: unknown;
}

/** A refusal with a registered reason. No other error crosses a service's border with its text. */
export class RefusalError extends Error {
  override readonly name = "RefusalError";
  readonly reason: Reason;
  readonly param: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;

  constructor(reason: Reason, details: RefusalDetails = {}) {
    const metadata = { ...details.metadata };
    super(
      details.message ??
        fill(registry[reason].message, { ...metadata, param: details.param ?? "" }),
      {
        cause: details.cause,
      },
    );
    this.reason = reason;
    this.param = details.param;
    this.metadata = metadata;
  }
}

/** Throws a {@link RefusalError}. */
export function refuse(reason: Reason, details: RefusalDetails = {}): never {
  throw new RefusalError(reason, details);
}

/** A refusal for a request whose resource is away, or busy for others. The caller may ask again in a second. */
export function unavailable(cause?: unknown): RefusalError {
  const metadata = { retry_after_ms: "1000" };
  return new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, { metadata, cause });
}

/** The registry's row of a reason, with its `error.code`: the reason's name in lower case. */
export function errorRow(reason: Reason): ErrorRow & { code: string } {
  return { ...registry[reason], code: reasonName(reason).toLowerCase() };
}

/** Is `error` a refusal, and (where given) one of these reasons? */
export function isRefusal(error: unknown, ...reasons: Reason[]): error is RefusalError {
  return error instanceof RefusalError && (reasons.length === 0 || reasons.includes(error.reason));
}

const names = new Map<number, string>(Object.entries(ErrorReason).map(([name, n]) => [n, name]));

/** "MODEL_NOT_FOUND", as `google.rpc.ErrorInfo.reason` has it. */
export function reasonName(reason: Reason): string {
  return names.get(reason) ?? "INTERNAL_ERROR";
}

/** The reason of a name, or undefined where this build does not know it. */
export function reasonOfName(name: string): Reason | undefined {
  return allReasons().find((reason) => names.get(reason) === name);
}

/** The reason in a message's field, or undefined where it is unset or of a newer build. */
export function knownReason(value: ErrorReason): Reason | undefined {
  return value in registry ? (value as Reason) : undefined;
}

/** Every reason that the registry holds. */
export function allReasons(): Reason[] {
  return Object.keys(registry).map(Number) as Reason[];
}

/** The registry's text of a reason for a request of which only these facts are kept. A placeholder without its fact is left out. */
export function generalMessage(reason: Reason, facts: Record<string, string>): string {
  return fill(registry[reason].message, facts).replace(/ ?''/g, "");
}

function fill(template: string, facts: Record<string, string>): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => facts[name] ?? "");
}
