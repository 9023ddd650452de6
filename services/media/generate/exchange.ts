import { isJsonObject, type JsonObject } from "#kit/json.ts";
import type { HttpReply } from "#kit/upstream/client.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import { answerLimits } from "#kit/upstream/limits.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { DriverContext } from "./context.ts";
import { keyMissing } from "./events.ts";
import { failed, isPolicyCode, StatusError, UnconnectedError, UnreadableError } from "./faults.ts";
import { retryAfterOf } from "./retries.ts";

/** One request to an upstream, within the origin of its base URL: its key goes along. */
export interface Call {
  upstream: Upstream;
  method: "GET" | "POST" | "DELETE";
  /** Absolute. */
  url: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | Uint8Array;
  /** Default `application/json`. */
  accept?: string;
  /** Milliseconds to the answer's last byte; at most, and by default, the upstream's. */
  timeoutMs?: number;
  /** It must not reach the upstream twice. */
  once?: boolean;
  signal: AbortSignal;
}

/** A success, and its body as an object. */
export interface JsonReply {
  status: number;
  body: JsonObject;
  /** What `Retry-After` asks for, in milliseconds. */
  retryAfterMs: number | undefined;
}

/**
 * Sends once and resolves with the head of a 2xx or 3xx answer, its body to be read. Throws {@link StatusError},
 * `UpstreamError`, {@link UnconnectedError} where not even a connection came about, a `failed` GenerationError where the key is not set, or the signal's reason.
 */
export async function exchange(context: DriverContext, call: Call): Promise<HttpReply> {
  const { upstream, method, url, body, signal } = call;
  const timeoutMs = Math.min(
    call.timeoutMs ?? Number.POSITIVE_INFINITY,
    Number(upstream.timeoutMs),
  );
  const client = call.once ? context.freshHttp : context.http;
  let isSent = false;
  const request = client.request({
    method,
    url,
    headers: {
      accept: call.accept ?? "application/json",
      "user-agent": "genmesh",
      ...(call.once ? { connection: "close" } : {}),
      ...authorization(context, upstream),
      ...call.headers,
    },
    ...(body === undefined ? {} : { body }),
    connectTimeoutMs: Number(upstream.connectTimeoutMs),
    // Whatever is generated within the request comes before the head.
    headTimeoutMs: timeoutMs,
    idleTimeoutMs: Number(upstream.idleTimeoutMs),
    timeoutMs,
    onSent: () => {
      isSent = true;
    },
    signal,
  });
  const reply = await request.catch((error) => {
    if (isSent || !(error instanceof UpstreamError)) throw error;
    throw new UnconnectedError(error.message, { cause: error });
  });
  if (reply.status < 400) return reply;
  throw await statusErrorOf(reply, context.clock.now());
}

/** Sends once and reads the JSON object that is the answer, once `mayRead` lets it. Throws like {@link exchange}, or {@link UnreadableError}. */
export async function exchangeJson(
  context: DriverContext,
  call: Call,
  maxBytes: number,
  mayRead?: (reply: HttpReply) => Promise<void>,
): Promise<JsonReply> {
  const reply = await exchange(context, call);
  if (reply.status >= 300) {
    reply.body.close();
    throw new StatusError(reply.status);
  }
  await mayRead?.(reply).catch((error) => {
    reply.body.close();
    throw error;
  });
  const body = parsed(await reply.body.whole(maxBytes));
  if (!body) throw new UnreadableError("the answer is no JSON object");
  const retryAfterMs = retryAfterOf(reply.headers, context.clock.now());
  return { status: reply.status, body, retryAfterMs };
}

/** Headers and body of a JSON request. */
export function jsonBody(value: JsonObject): Pick<Call, "headers" | "body"> {
  return { headers: { "content-type": "application/json" }, body: JSON.stringify(value) };
}

/** The URL of a path under the upstream's base. */
export function urlOf(upstream: Upstream, path: string): string {
  return `${upstream.baseUrl}${path}`;
}

function authorization(context: DriverContext, upstream: Upstream): Record<string, string> {
  if (upstream.apiKeyEnv === "") return {};
  const key = context.secrets(upstream.apiKeyEnv);
  if (key) return { authorization: `Bearer ${key}` };
  keyMissing(context.log, upstream);
  throw failed("the upstream's key is not set");
}

async function statusErrorOf(reply: HttpReply, nowMs: number): Promise<StatusError> {
  const timer = setTimeout(() => reply.body.close(), answerLimits.errorMs);
  // An error without a readable body is one all the same.
  const text = await reply.body.whole(answerLimits.errorBytes).catch(() => undefined);
  clearTimeout(timer);
  const error = text && parsed(text)?.error;
  const code = isJsonObject(error) ? codeOf(error) : undefined;
  const retryAfterMs = retryAfterOf(reply.headers, nowMs);
  return new StatusError(reply.status, {
    ...(code ? { code } : {}),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/** The error's code, where it is a word that may stand in a log; its type where that tells a refusal for content. */
function codeOf({ code, type }: JsonObject): string | undefined {
  const word = isPolicyCode(type) ? type : code;
  return typeof word === "string" && /^[A-Za-z0-9_.-]{1,64}$/.test(word) ? word : undefined;
}

function parsed(bytes: Uint8Array): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString());
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
