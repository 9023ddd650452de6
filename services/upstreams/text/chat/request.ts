import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";
import { inputOf } from "./request-input.ts";
import { formatOf, searchTool, toolChoiceOf, toolsOf } from "./request-options.ts";
import { isTooMuch, maxStopCharacters, maxStops, stopsOf } from "./stops.ts";

/**
 * A Chat Completions request in the Responses format, for upstreams that speak only that. Fields that mean the same under
 * the same name go on untouched. {@link untranslatable} says what has no such form.
 */
export function toResponsesRequest(chat: JsonObject, passed: readonly string[]): JsonObject {
  const responses: JsonObject = {};
  for (const [name, value] of Object.entries(chat)) {
    const isKnown = !translated.has(name) || (name === "seed" && isPassed(name, passed));
    // In this API null is the default.
    if (value !== null && isKnown && !isDefault(name, value)) responses[name] = value;
  }
  responses.input = inputOf(chat.messages);
  setWhere(responses, "tools", toolsOf(chat.tools, searchTool(chat.web_search_options)));
  setWhere(responses, "tool_choice", toolChoiceOf(chat.tool_choice));
  setWhere(responses, "text", formatOf(chat));
  if (typeof chat.reasoning_effort === "string") {
    const reasoning = isJsonObject(chat.reasoning) ? chat.reasoning : {};
    responses.reasoning = { ...reasoning, effort: chat.reasoning_effort };
  }
  if (chat.logprobs === true) responses.include = ["message.output_text.logprobs"];
  setWhere(responses, "stream_options", streamOptionsOf(chat.stream_options));
  return responses;
}

/** Fields that become others, or that only steer this side. `seed` is a hint that Responses do not have, unless the model's upstream is said to take it. */
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
  "stop",
  "seed",
  "web_search_options",
]);

/** Chat's own fields for which Responses have nothing, unless the model's upstream is said to take them. */
const chatOnly = ["function_call", "functions", "logit_bias", "prediction"];
/** Types of `response_format` that Responses have too. */
const formats: readonly JsonValue[] = ["text", "json_object", "json_schema"];

/** What a translated request would lack; undefined where it lacks nothing. `passed`: the model's `passParameters`. */
export function untranslatable(
  chat: JsonObject,
  passed: readonly string[],
): { param: string; message: string } | undefined {
  const message = "The model does not take this parameter in Chat Completions.";
  const param = chatOnly.find((name) => {
    const value = chat[name] ?? null;
    return value !== null && !isDefault(name, value) && !isPassed(name, passed);
  });
  if (param) return { param, message };
  const format = chat.response_format;
  if (isJsonObject(format) && !formats.includes(format.type ?? null)) {
    return { param: "response_format.type", message: "The model does not know this format." };
  }
  if (isTooMuch(stopsOf(chat.stop))) {
    const bounds = `at most ${maxStops} sequences of at most ${maxStopCharacters} characters`;
    return { param: "stop", message: `The parameter 'stop' has ${bounds}.` };
  }
  return undefined;
}

function isPassed(name: string, passed: readonly string[]): boolean {
  return passed.includes(name) || passed.includes("*");
}

/** Is it a value that says no more than leaving the field out? Responses do not know these fields. */
export function isDefault(name: string, value: JsonValue): boolean {
  switch (name) {
    case "n":
      return value === 1;
    case "presence_penalty":
    case "frequency_penalty":
      return value === 0;
    case "logit_bias":
      return isJsonObject(value) && Object.keys(value).length === 0;
    case "functions":
      return Array.isArray(value) && value.length === 0;
    case "function_call":
      return value === "auto" || value === "none";
    case "modalities":
      return Array.isArray(value) && value.every((one) => one === "text");
    case "top_logprobs":
      return value === 0;
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
