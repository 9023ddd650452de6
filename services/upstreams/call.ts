// Sends one request to an upstream of the catalog, with its key and within its times. It also reads upstreams' errors as far as
// all protocols share their words. The drivers of text and media have steps of their own around it.

import { isJsonObject, type JsonObject, shapeFault } from "#kit/base/json.ts";
import type { HttpBody, HttpClient, HttpReply, HttpRequest } from "#kit/upstream/client.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import { storedKeyPrefix } from "#kit/upstream/key-file.ts";
import { answerLimits } from "#kit/upstream/limits.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";

/** The parts that calling configured upstreams needs. */
export interface CallContext {
  http: HttpClient;
  /** The key that a catalog names: in a variable, in a file, whose path is absolute, or stored. Undefined: there is none. */
  secrets: (name: string) => string | undefined | Promise<string | undefined>;
}

/** The variable or the file that holds an upstream's key, or the name of its stored key. "": it has no key. */
export function keyNameOf({ apiKeyEnv, apiKeyFile, apiKeyStored }: Upstream): string {
  return apiKeyEnv || apiKeyFile || (apiKeyStored && storedKeyPrefix + apiKeyStored);
}

/** The key of an upstream. Undefined where it has none, or where that is not there. */
export function keyOf(
  { secrets }: Pick<CallContext, "secrets">,
  upstream: Upstream,
): ReturnType<CallContext["secrets"]> {
  const name = keyNameOf(upstream);
  return name === "" ? undefined : secrets(name);
}

/** The header that carries a key: `Authorization` with the scheme `Bearer`, unless an upstream needs another one. */
export interface KeyHeader {
  /** In lower case. */
  name: string;
  /** The word before the key. Absent: none. */
  scheme?: string;
}

const bearer: KeyHeader = { name: "authorization", scheme: "Bearer" };

/** One request to an upstream, within the origin of its base URL. It carries the upstream's key. */
export interface UpstreamCall
  extends Pick<HttpRequest, "method" | "url" | "body" | "once" | "onSent" | "signal"> {
  upstream: Upstream;
  headers?: Readonly<Record<string, string>>;
  /** The way in which the key is sent. Default: {@link bearer}. "none": it is not sent. */
  key?: KeyHeader | "none" | undefined;
  /** Does the answer's head come when a stream begins, not when everything is generated? Default: false. */
  isStream?: boolean;
  /** Milliseconds to the answer's last byte. The upstream's own value is the default and the maximum. */
  timeoutMs?: number | undefined;
  /** Milliseconds to the answer's head, where it takes less time than the body. Default: `timeoutMs`. */
  headTimeoutMs?: number | undefined;
}

/** Sends once and resolves with the answer's head, of any status. Throws {@link UpstreamError}, or the signal's reason. */
export function callUpstream(context: CallContext, call: UpstreamCall): Promise<HttpReply> {
  const { upstream, key } = call;
  const needsKey = keyNameOf(upstream) !== "" && key !== "none";
  const found = needsKey ? keyOf(context, upstream) : undefined;
  if (found instanceof Promise) return found.then((one) => callWith(one, context, call));
  return callWith(found, context, call);
}

function callWith(
  key: string | undefined,
  { http }: CallContext,
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
  const needsKey = keyNameOf(upstream) !== "" && sentAs !== "none";
  if (needsKey && !key) return Promise.reject(new UpstreamError("misconfigured"));
  const timeoutMs = Math.min(wanted ?? Number.POSITIVE_INFINITY, Number(upstream.timeoutMs));
  const idleTimeoutMs = Number(upstream.idleTimeoutMs);
  return http.request({
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
}

function keyText({ scheme }: KeyHeader, key: string): string {
  return scheme === undefined ? key : `${scheme} ${key}`;
}

/** The JSON object in these bytes. Undefined where they hold something else, or where it is nested too deep to be walked. */
export function objectIn(bytes: Buffer): JsonObject | undefined {
  return isTooDeep(bytes) ? undefined : anyObjectIn(bytes);
}

/** Is an answer nested deeper than a request may be? Code that reads it and writes it again would overflow the stack. */
export function isTooDeep(bytes: Uint8Array): boolean {
  return shapeFault(bytes, { marks: Number.POSITIVE_INFINITY }) === "deep";
}

/** The JSON object, nested to any depth. For reading its own fields alone. */
export function anyObjectIn(bytes: Buffer): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** An error's body, where it is a JSON object and comes soon. Otherwise an empty one. Never rejects. */
export async function readErrorBody({ body }: HttpReply): Promise<JsonObject> {
  const timer = setTimeout(() => body.close(), answerLimits.errorMs);
  const object = await readError(body).catch(() => undefined);
  clearTimeout(timer);
  body.release();
  return object ?? {};
}

/** Google's servers answer with a list of one error. */
async function readError(body: HttpBody): Promise<JsonObject | undefined> {
  const bytes = await body.whole(answerLimits.errorBytes);
  if (isTooDeep(bytes)) return undefined;
  const value: unknown = JSON.parse(bytes.toString());
  const first: unknown = Array.isArray(value) ? value[0] : value;
  return isJsonObject(first) ? first : undefined;
}

/** The error in an error's body: its `error`, or the body itself. */
export function errorIn(body: JsonObject): JsonObject {
  return isJsonObject(body.error) ? body.error : body;
}

/** Codes of upstreams for a refusal because of the request's content. */
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

/** Codes of upstreams, with any status, for an operator's account there that may not be charged any further. */
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

/** Does an error mean that the operator's account at the upstream has no money left? `words`: its `code`, its `type`, its `status`. */
export function isEmptyAccount(status: number, words: readonly unknown[]): boolean {
  if (status === 402) return true;
  return words.some((word) => typeof word === "string" && emptyAccountCodes.has(word));
}

/** Other codes, types and statuses with which upstreams explain an error, and that help an operator. */
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
 * The word for a log of the words by which an upstream names its error: a word that is known here, or `other`. An upstream may repeat
 * the request there, so unknown words are not logged. A word for a refusal because of content comes before others. Undefined where
 * there is no word.
 */
export function knownCode(words: readonly unknown[]): string | undefined {
  const texts = words.filter((word) => typeof word === "string").map((word) => word.toLowerCase());
  const isKnown = (word: string) => emptyAccountCodes.has(word) || otherCodes.has(word);
  const code = texts.find((word) => policyCodes.has(word)) ?? texts.find(isKnown);
  return code ?? (texts.length > 0 ? "other" : undefined);
}
