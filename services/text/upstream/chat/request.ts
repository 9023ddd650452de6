import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";
import { UpstreamFailure } from "../failure.ts";
import { inputOf } from "./request-input.ts";
import { formatOf, toolChoiceOf, toolsOf } from "./request-options.ts";

/**
 * A Chat Completions request in the Responses format, for upstreams that speak only that. Fields that mean the same
 * under the same name, and all that we do not know, go on untouched: upstream says whether it takes them. Throws
 * `UpstreamFailure` at `instructions`: chat has none, and Responses would put them before the operator's prompt.
 */
export function toResponsesRequest(chat: JsonObject): JsonObject {
  if ((chat.instructions ?? null) !== null) {
    throw new UpstreamFailure("invalid_request", { param: "instructions" });
  }
  const responses: JsonObject = {};
  for (const [name, value] of Object.entries(chat)) {
    // In this API null is the default.
    if (value !== null && !translated.has(name) && !isDefault(name, value)) responses[name] = value;
  }
  responses.input = inputOf(chat.messages);
  setWhere(responses, "tools", toolsOf(chat.tools));
  setWhere(responses, "tool_choice", toolChoiceOf(chat.tool_choice));
  setWhere(responses, "text", formatOf(chat));
  if (typeof chat.reasoning_effort === "string") {
    responses.reasoning = { effort: chat.reasoning_effort };
  }
  if (chat.logprobs === true) responses.include = ["message.output_text.logprobs"];
  setWhere(responses, "stream_options", streamOptionsOf(chat.stream_options));
  return responses;
}

/** Fields that become others, or that only steer this side. `seed` is a hint that Responses do not have. */
const translated = new Set([
  "messages",
  "max_completion_tokens",
  "max_tokens",
  "tools",
  "tool_choice",
  "response_format",
  "verbosity",
  "reasoning_effort",
  "logprobs",
  "stream_options",
  "seed",
]);

/** Is it a value that says no more than leaving the field out? Responses do not know these fields. */
function isDefault(name: string, value: JsonValue): boolean {
  switch (name) {
    case "n":
      return value === 1;
    case "presence_penalty":
    case "frequency_penalty":
      return value === 0;
    case "logit_bias":
      return isJsonObject(value) && Object.keys(value).length === 0;
    case "stop":
      return Array.isArray(value) && value.length === 0;
    case "modalities":
      return Array.isArray(value) && value.length === 1 && value[0] === "text";
    default:
      return false;
  }
}

/** The usage chunk is made here; only the padding of deltas is upstream's. */
function streamOptionsOf(options: JsonValue | undefined): JsonValue | undefined {
  if (!isJsonObject(options) || options.include_obfuscation === undefined) return undefined;
  return { include_obfuscation: options.include_obfuscation };
}

function setWhere(target: JsonObject, name: string, value: JsonValue | undefined): void {
  if (value !== undefined && value !== null) target[name] = value;
}
