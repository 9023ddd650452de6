import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";
import { type Fields, only } from "./allowed.ts";
import type { ReportedUsage } from "./port.ts";

/**
 * Usage of a Responses object; undefined where none was reported. What is there but is no number becomes NaN, so that
 * it is looked at rather than guessed.
 */
export function usageOfResponse(usage: JsonValue | undefined): ReportedUsage | undefined {
  return reported(usage, "input_tokens", "output_tokens", "input_tokens_details");
}

/** Usage of a chat completion; as {@link usageOfResponse}. */
export function usageOfChat(usage: JsonValue | undefined): ReportedUsage | undefined {
  return reported(usage, "prompt_tokens", "completion_tokens", "prompt_tokens_details");
}

/** Usage in an answer or event of either protocol, whatever else it is. */
export function usageIn(answer: JsonObject): ReportedUsage | undefined {
  const { usage, response } = answer;
  const own = usageOfResponse(usage) ?? usageOfChat(usage);
  return own ?? (isJsonObject(response) ? usageIn(response) : undefined);
}

function reported(
  usage: JsonValue | undefined,
  input: string,
  output: string,
  details: string,
): ReportedUsage | undefined {
  if (!isJsonObject(usage)) return undefined;
  const isWhole = isPresent(usage[input]) && isPresent(usage[output]);
  if (!isWhole) return undefined;
  const detail = usage[details];
  const cached = isJsonObject(detail) ? detail.cached_tokens : undefined;
  return {
    inputTokens: numberOf(usage[input]),
    cachedInputTokens: isPresent(cached) ? numberOf(cached) : 0,
    outputTokens: numberOf(usage[output]),
  };
}

function isPresent(value: JsonValue | undefined): boolean {
  return value !== undefined && value !== null;
}

function numberOf(value: JsonValue | undefined): number {
  return typeof value === "number" ? value : Number.NaN;
}

/** Numbers of tokens; what servers add (their own costs and times) is the operator's. */
const usageFields: Fields = {
  input_tokens: "plain",
  input_tokens_details: {
    audio_tokens: "plain",
    cache_write_tokens: "plain",
    cached_tokens: "plain",
    image_tokens: "plain",
    text_tokens: "plain",
  },
  output_tokens: "plain",
  output_tokens_details: {
    audio_tokens: "plain",
    image_tokens: "plain",
    reasoning_tokens: "plain",
    text_tokens: "plain",
  },
  total_tokens: "plain",
  // Ours, and so another genmesh's: the tokens were counted, not reported.
  estimated: "plain",
};

/** A Responses usage object with the fields that clients rely on; null stays null. */
export function completeUsage(usage: JsonValue | undefined): JsonValue {
  if (!isJsonObject(usage)) return null;
  const input = typeof usage.input_tokens === "number" ? usage.input_tokens : 0;
  const output = typeof usage.output_tokens === "number" ? usage.output_tokens : 0;
  const shown = only(usage, usageFields);
  return {
    input_tokens: input,
    output_tokens: output,
    total_tokens: input + output,
    ...shown,
    input_tokens_details: withDefaults(shown.input_tokens_details, { cached_tokens: 0 }),
    output_tokens_details: withDefaults(shown.output_tokens_details, { reasoning_tokens: 0 }),
  };
}

/** The Responses usage object in the format of a chat completion. */
export function chatUsageOf(usage: JsonValue | undefined): JsonObject | undefined {
  if (!isJsonObject(usage)) return undefined;
  const whole = completeUsage(usage) as JsonObject;
  return {
    prompt_tokens: whole.input_tokens ?? 0,
    completion_tokens: whole.output_tokens ?? 0,
    total_tokens: whole.total_tokens ?? 0,
    prompt_tokens_details: whole.input_tokens_details ?? {},
    completion_tokens_details: whole.output_tokens_details ?? {},
    ...(whole.estimated === undefined ? {} : { estimated: whole.estimated }),
  };
}

function withDefaults(value: JsonValue | undefined, defaults: JsonObject): JsonObject {
  return isJsonObject(value) ? { ...defaults, ...value } : defaults;
}
