import { isJsonObject, type JsonObject, shapeFault } from "#kit/base/json.ts";
import type { HttpBody, HttpClient, HttpReply, HttpRequest } from "#kit/upstream/client.ts";
import { decodedReply } from "#kit/upstream/decoded-body.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import { answerLimits } from "#kit/upstream/limits.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";

/** What calling configured upstreams needs. */
export interface CallContext {
  http: HttpClient;
  /** The value of a variable that a catalog names as `apiKeyEnv`; undefined: it is not set. */
  secrets: (envName: string) => string | undefined;
}

/** The header that a key is sent in: `Authorization` with the scheme `Bearer`, unless an upstream wants it otherwise. */
export interface KeyHeader {
  /** Lower case. */
  name: string;
  /** The word before the key; absent: none. */
  scheme?: string;
}

const bearer: KeyHeader = { name: "authorization", scheme: "Bearer" };

/** One request to an upstream, within the origin of its base URL: its key goes along. */
export interface UpstreamCall
  extends Pick<HttpRequest, "method" | "url" | "body" | "once" | "onSent" | "signal"> {
  upstream: Upstream;
  headers?: Readonly<Record<string, string>>;
  /** How the key goes along; default {@link bearer}. "none": it does not. */
  key?: KeyHeader | "none" | undefined;
  /** The answer's head comes when a stream begins, not when everything is generated; default false. */
  isStream?: boolean;
  /** Milliseconds to the answer's last byte; at most, and by default, the upstream's. */
  timeoutMs?: number | undefined;
  /** Milliseconds to its head, where that takes less than what follows; default `timeoutMs`. */
  headTimeoutMs?: number | undefined;
}

/** Sends once and resolves with the answer's head, of any status. Throws {@link UpstreamError}, or the signal's reason. */
export async function callUpstream(
  { http, secrets }: CallContext,
  {
    upstream,
    headers,
    key: sentAs = bearer,
    isStream = false,
    timeoutMs: wanted,
    headTimeoutMs: wantedHead,
    ...request
  }: UpstreamCall,
): Promise<HttpReply> {
  const needsKey = upstream.apiKeyEnv !== "" && sentAs !== "none";
  const key = needsKey ? secrets(upstream.apiKeyEnv) : undefined;
  if (needsKey && !key) throw new UpstreamError("misconfigured");
  const timeoutMs = Math.min(wanted ?? Number.POSITIVE_INFINITY, Number(upstream.timeoutMs));
  const idleTimeoutMs = Number(upstream.idleTimeoutMs);
  const reply = await http.request({
    ...request,
    headers: {
      "user-agent": "genmesh",
      ...(key && sentAs !== "none" ? { [sentAs.name]: keyText(sentAs, key) } : {}),
      ...headers,
    },
    connectTimeoutMs: Number(upstream.connectTimeoutMs),
    headTimeoutMs: isStream ? idleTimeoutMs : Math.min(wantedHead ?? timeoutMs, timeoutMs),
    idleTimeoutMs,
    timeoutMs,
  });
  return decodedReply(reply);
}

function keyText({ scheme }: KeyHeader, key: string): string {
  return scheme === undefined ? key : `${scheme} ${key}`;
}

/** A body that is a JSON object; undefined where it is something else. Over `maxBytes`: `too_large`. */
export async function readObject(
  body: HttpBody,
  maxBytes: number,
): Promise<JsonObject | undefined> {
  return objectIn(await body.whole(maxBytes));
}

/** The JSON object that bytes hold; undefined where they hold something else, or what is nested too deep to be walked. */
export function objectIn(bytes: Buffer): JsonObject | undefined {
  return isTooDeep(bytes) ? undefined : anyObjectIn(bytes);
}

/** Is an answer nested deeper than a request may be? What reads it and writes it anew would overflow the stack. */
export function isTooDeep(bytes: Uint8Array): boolean {
  return shapeFault(bytes, { marks: Number.POSITIVE_INFINITY }) === "deep";
}

/** The same, however deep: for its own fields alone. */
export function anyObjectIn(bytes: Buffer): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** An error's body, as far as it is a JSON object and comes soon; else an empty one. Never rejects. */
export async function readErrorBody({ body }: HttpReply): Promise<JsonObject> {
  const timer = setTimeout(() => body.close(), answerLimits.errorMs);
  const object = await readObject(body, answerLimits.errorBytes).catch(() => undefined);
  clearTimeout(timer);
  body.release();
  return object ?? {};
}

/** The error that an error's body tells: its `error`, or the body itself. */
export function errorIn(body: JsonObject): JsonObject {
  return isJsonObject(body.error) ? body.error : body;
}

/** Codes by which upstreams say that they refused a request for its content. */
const policyCodes: ReadonlySet<string> = new Set([
  "bio_policy",
  "content_against_policy",
  "content_filter",
  "content_policy_violation",
  "contentfilter",
  "cyber_policy",
  "image_content_policy_violation",
  "input_moderation",
  "misalignment_policy_violation",
  "moderation_blocked",
  "output_moderation",
  "responsibleaipolicyviolation",
  "safety_violation",
  "sentinel_block",
]);

/** Does an error's `code` or `type` mean a refusal for its content? */
export function isPolicyCode(code: unknown): boolean {
  return typeof code === "string" && policyCodes.has(code.toLowerCase());
}

/** Codes by which upstreams say that the operator's account there may spend no more, with any status. */
const emptyAccountCodes: ReadonlySet<string> = new Set([
  "billing_hard_limit_reached",
  "billing_not_active",
  "insufficient_balance",
  "insufficient_credits",
  "insufficient_quota",
  "key_limit_exceeded",
  "payment_required",
  "quota_exceeded",
]);

/** Does an error mean that the operator's account at the upstream has run empty? `words`: its `code`, its `type`, its `status`. */
export function isEmptyAccount(status: number, words: readonly unknown[]): boolean {
  if (status === 402) return true;
  return words.some((word) => typeof word === "string" && emptyAccountCodes.has(word));
}

/** Codes, types and statuses beside these by which upstreams explain an error, and that tell an operator what to do. */
const otherCodes: ReadonlySet<string> = new Set([
  // OpenAI, servers like it, and other deployments of genmesh.
  "authentication_error",
  "conflict",
  "internal_error",
  "invalid_api_key",
  "invalid_image",
  "invalid_parameter",
  "invalid_request_error",
  "invalid_type",
  "invalid_value",
  "job_not_cancellable",
  "missing_required_parameter",
  "model_not_found",
  "not_found",
  "overloaded_error",
  "permission_denied",
  "permission_error",
  "rate_limit_error",
  "rate_limit_exceeded",
  "server_error",
  "service_unavailable",
  "timeout",
  "unsupported_parameter",
  "unsupported_value",
  "upstream_timeout",
  // fal.
  "downstream_service_error",
  "downstream_service_unavailable",
  "feature_not_supported",
  "file_download_error",
  "file_too_large",
  "generation_timeout",
  "image_load_error",
  "image_too_large",
  "image_too_small",
  "internal_server_error",
  "missing",
  "no_media_generated",
  "unsupported_image_format",
  "value_error",
  // ComfyUI.
  "invalid_prompt",
  "missing_node_type",
  "no_prompt",
  "prompt_no_outputs",
  "prompt_outputs_failed_validation",
  // ElevenLabs.
  "detected_unusual_activity",
  "max_character_limit_exceeded",
  "missing_permissions",
  "needs_authorization",
  "system_busy",
  "too_many_concurrent_requests",
  "validation_error",
  "voice_not_found",
]);

/**
 * What a log may say of the words by which an upstream names its error: a word that is known here, or `other`, for an upstream may
 * repeat there what it was sent. The one that tells a refusal for content before the others; undefined where there is no word.
 */
export function knownCode(words: readonly unknown[]): string | undefined {
  const texts = words.filter((word) => typeof word === "string").map((word) => word.toLowerCase());
  const isKnown = (word: string) => emptyAccountCodes.has(word) || otherCodes.has(word);
  const code = texts.find((word) => policyCodes.has(word)) ?? texts.find(isKnown);
  return code ?? (texts.length > 0 ? "other" : undefined);
}
