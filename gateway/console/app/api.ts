// Asks the gateway for the page. Every request of the console is sent here, so that refusals and lost connections are treated
// in one way.

import { askForSecret } from "./secret.ts";
import { endSession } from "./session.ts";

/** The address of `/v1` for this page's session. */
export const v1 = "/console/api/v1";

/** A refusal of the API, or a failure to reach it. `message` is for the reader. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly param: string | null;
  readonly requestId: string | null;
  /** Fields other than the usual four, such as `requiredCredits`. */
  readonly details: Record<string, unknown>;

  constructor(status: number, error: Record<string, unknown>, requestId: string | null) {
    super(String(error.message ?? `The service answered ${status} without an explanation.`));
    this.status = status;
    this.code = String(error.code ?? "");
    this.param = typeof error.param === "string" ? error.param : null;
    this.requestId = requestId;
    this.details = error;
  }
}

export interface CallOptions {
  method?: "GET" | "POST" | "PATCH" | "DELETE";
  /** Sent as JSON. */
  body?: unknown;
  /** An upload, instead of `body`. */
  form?: FormData;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Asks the API and reads its JSON. `path` begins with `/`. A path of `/console/api…` is used unchanged, any other is below `/v1`. */
export async function call<T>(path: string, options: CallOptions = {}): Promise<T> {
  const response = await open(path, options);
  if (response.status === 204) return undefined as T;
  return (await response.json()) as T;
}

/**
 * The answer of an accepted request, with its body unread. The API may want the secret again, before keys are made or money is moved.
 * Then the reader is asked for it, and the same request is sent again with it.
 */
export async function open(path: string, options: CallOptions = {}): Promise<Response> {
  const first = await send(path, options);
  if (first.ok) return first;
  let error = await errorOf(first);
  while (error.code === "secret_required") {
    const isSecondTry = options.headers?.["x-console-secret"] !== undefined;
    const secret = await askForSecret(isSecondTry);
    if (secret === null) throw new Cancelled();
    options = { ...options, headers: { ...options.headers, "x-console-secret": secret } };
    const again = await send(path, options);
    if (again.ok) return again;
    error = await errorOf(again);
  }
  if (error.status === 401 && !path.endsWith("/session")) endSession();
  throw error;
}

/** The reader closed the question for the secret. Nothing was done, so no message is shown. */
export class Cancelled extends Error {}

async function send(path: string, options: CallOptions): Promise<Response> {
  const { method = "GET", body, form, signal } = options;
  const headers = new Headers(options.headers);
  if (body !== undefined) headers.set("content-type", "application/json");
  const url = path.startsWith("/console/") ? path : v1 + path;
  try {
    return await fetch(url, {
      method,
      headers,
      credentials: "same-origin",
      body: form ?? (body === undefined ? null : JSON.stringify(body)),
      ...(signal && { signal }),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    const message = "The service could not be reached. Check your connection, then try again.";
    throw new ApiError(0, { message, code: "unreachable" }, null);
  }
}

async function errorOf(response: Response): Promise<ApiError> {
  const requestId = response.headers.get("x-request-id");
  const body = await response.json().catch(() => ({}));
  return new ApiError(response.status, body?.error ?? {}, requestId);
}

/** `{a: 1, b: undefined, c: ["x", "y"]}` as `?a=1&c=x&c=y`. Values that are undefined or "" are left out. */
export function queryOf(
  values: Record<string, string | number | boolean | readonly string[] | undefined>,
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || value === "") continue;
    for (const one of Array.isArray(value) ? value : [value]) query.append(name, String(one));
  }
  const text = query.toString();
  return text === "" ? "" : `?${text}`;
}
