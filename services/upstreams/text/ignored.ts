import type { JsonObject, JsonValue } from "#kit/base/json.ts";
import { isDefault } from "./chat/request.ts";
import type { UpstreamRequest } from "./port.ts";

/** Names in one header: a body may hold ten thousand. */
const maxNamed = 32;
/** Characters of one name in it. */
const maxNameCharacters = 64;

/**
 * Names of the properties that the caller sent and that had no effect, those within others by their path, as they may stand in a header: neither did they go
 * upstream in this request, nor is what they ask for done here. `sent`: the upstream's body; `path`: where it went; `there`:
 * what another deployment, as the upstream, says that it left out.
 */
export function ignoredParameters(
  request: Pick<UpstreamRequest, "asked" | "operation" | "stream" | "leftOut">,
  sent: JsonObject,
  path: string,
  there: readonly string[] = [],
): string[] {
  const { asked, operation } = request;
  const isTranslated = operation === "chat" && path !== "/chat/completions";
  const left: string[] = [];
  for (const [name, value] of Object.entries(asked)) {
    if (left.length === maxNamed) break;
    // Null says the same as leaving the property out.
    if (value === null) continue;
    const inHeader = headerName(name);
    const took = isTranslated ? isTranslation(name, value, sent) : isSent(name, value, sent);
    const hasEffect = isServedHere(name, value, request) || (took && !there.includes(inHeader));
    if (!hasEffect) left.push(inHeader);
  }
  const within = new Set((request.leftOut ?? []).map(headerName));
  return [...left, ...within].slice(0, maxNamed);
}

/** Is what the property asks for done on this side, with or without upstream hearing of it? */
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
      return true;
    case "max_completion_tokens":
    case "max_tokens":
      return operation === "chat";
    default:
      return false;
  }
}

/** Properties whose value the operator may have replaced. */
const operators: ReadonlySet<string> = new Set(["service_tier", "store"]);

function isSent(name: string, value: JsonValue, sent: JsonObject): boolean {
  return Object.hasOwn(sent, name) && (!operators.has(name) || sent[name] === value);
}

/** Properties of Chat Completions that go up in another form, or whose work is done here. */
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
  // Of functions in the older form there are none here that the model could choose from.
  if (name === "function_call" && value === "auto") return false;
  if (isDefault(name, value)) return true;
  return isSent(name, value, sent);
}

/** A property's name as a header may have it: tokens of HTTP, others percent-encoded, at most 64 characters. */
function headerName(name: string): string {
  const text = name.slice(0, maxNameCharacters).toWellFormed();
  return encodeURIComponent(text).slice(0, maxNameCharacters) || "%";
}
