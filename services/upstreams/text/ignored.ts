// Lists the parameters of a request that had no effect, so that the caller sees them in a header.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { isDefault } from "./chat/request.ts";
import type { UpstreamRequest } from "./port.ts";

/** The most names in one header. A body may hold ten thousand. */
const maxNamed = 32;
/** Characters of one name in the header. */
const maxNameCharacters = 64;

/**
 * Names of the caller's properties that had no effect, in a form for a header. Nested ones are named by their path. Such a property was
 * not sent to the upstream, and genmesh does not do its work itself. `sent` is the body for the upstream, and `path` its path. `there`:
 * properties that the upstream, if it is a genmesh too, reports as left out.
 */
export function ignoredParameters(
  request: Pick<UpstreamRequest, "asked" | "operation" | "stream" | "leftOut">,
  sent: JsonObject,
  path: string,
  there: readonly string[] = [],
): string[] {
  const { asked, operation } = request;
  const isMessage = operation === "messages" && path !== "/messages";
  const isTranslated = operation === "chat" && path !== "/chat/completions";
  const left: string[] = [];
  for (const name of Object.keys(asked)) {
    if (left.length === maxNamed) break;
    const value = asked[name];
    // Null means the same as an absent property.
    if (value === null || value === undefined) continue;
    const took = isMessage
      ? isInMessages(name, value, sent)
      : isTranslated
        ? isTranslation(name, value, sent)
        : isSent(name, value, sent);
    if (isServedHere(name, value, request) || (took && there.length === 0)) continue;
    const inHeader = headerName(name);
    if (!took || there.includes(inHeader)) left.push(inHeader);
  }
  const { leftOut = [] } = request;
  if (leftOut.length === 0) return left;
  return [...left, ...new Set(leftOut.map(headerName))].slice(0, maxNamed);
}

/** Beta features that the caller asks for and the upstream may not be asked for, each behind the name of their header. */
export function leftBetas(asked: readonly string[], { betas }: Pick<Upstream, "betas">): string[] {
  const left = asked.filter((beta) => !betas.includes(beta));
  return left.map((beta) => `anthropic-beta.${beta}`);
}

/** Does genmesh do the work of the property itself, whether or not the upstream gets it? */
function isServedHere(
  name: string,
  value: JsonValue,
  { operation, stream }: Pick<UpstreamRequest, "operation" | "stream">,
): boolean {
  switch (name) {
    case "stream":
      return operation !== "compact" || value !== true;
    case "stream_options":
      return operation === "chat" && stream;
    case "background":
    case "store":
      return value === false;
    case "instructions":
    case "max_output_tokens":
      return operation !== "messages";
    case "max_completion_tokens":
      return operation === "chat";
    case "max_tokens":
      return operation === "chat" || operation === "messages";
    default:
      return false;
  }
}

/** Properties whose value the operator may have replaced. */
const operators: ReadonlySet<string> = new Set(["service_tier", "store"]);

function isSent(name: string, value: JsonValue, sent: JsonObject): boolean {
  return Object.hasOwn(sent, name) && (!operators.has(name) || sent[name] === value);
}

/** Properties of Chat Completions that are sent in another form, or whose work genmesh does itself. */
const carried: ReadonlySet<string> = new Set([
  "messages",
  "reasoning_effort",
  "response_format",
  "stop",
  "verbosity",
  "web_search_options",
]);
/** Properties of a translated request that the translation makes. */
const made: ReadonlySet<string> = new Set(["include", "input", "text"]);

function isTranslation(name: string, value: JsonValue, sent: JsonObject): boolean {
  if (carried.has(name)) return true;
  if (name === "logprobs") return value === false || "include" in sent;
  if (made.has(name)) return sent[name] === value;
  // The older form of functions is not translated, so the model has none to choose from.
  if (name === "function_call" && value === "auto") return false;
  if (isDefault(name, value)) return true;
  return isSent(name, value, sent);
}

/** Properties of Messages that are sent in another form, or whose work genmesh does itself. */
const carriedOfMessages: ReadonlySet<string> = new Set([
  "messages",
  "stop_sequences",
  "system",
  "tool_choice",
  "tools",
]);
/** Properties of a request that is sent in the format of Responses, which the caller cannot set. */
const setHere: ReadonlySet<string> = new Set([
  ...["include", "input", "instructions", "parallel_tool_calls", "prompt_cache_key"],
  ...["reasoning", "reasoning_effort", "response_format", "service_tier", "store", "text"],
]);

function isInMessages(name: string, value: JsonValue, sent: JsonObject): boolean {
  if (carriedOfMessages.has(name)) return true;
  const isReasoning = (sent.reasoning ?? sent.reasoning_effort) !== undefined;
  if (name === "thinking") return isReasoning || isOff(value);
  if (name === "output_config")
    return isReasoning || (sent.text ?? sent.response_format) !== undefined;
  return !setHere.has(name) && Object.hasOwn(sent, name);
}

function isOff(thinking: JsonValue): boolean {
  return isJsonObject(thinking) && thinking.type === "disabled";
}

/** A property's name as a header may have it: tokens of HTTP, others percent-encoded, at most 64 characters. */
function headerName(name: string): string {
  const text = name.slice(0, maxNameCharacters).toWellFormed();
  return encodeURIComponent(text).slice(0, maxNameCharacters) || "%";
}
