import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { type Fields, only } from "./allowed.ts";
import type { ReportedUsage } from "./port.ts";

/**
 * Usage of a Responses object; undefined where none was reported. What is there but is no number becomes NaN, so that
 * it is looked at rather than guessed.
 */
export function usageOfResponse(usage: JsonValue | undefined): ReportedUsage | undefined {
  return reported(usage, responseNames);
}

/** Usage of a chat completion; as {@link usageOfResponse}. */
export function usageOfChat(usage: JsonValue | undefined): ReportedUsage | undefined {
  return reported(usage, chatNames);
}

/** Usage as it was reported, and what it says. */
export interface FoundUsage {
  object: JsonObject;
  usage: ReportedUsage;
}

/**
 * Usage in an answer, event or error of either protocol, of any type; undefined where none that is whole stands in it,
 * in its `response`, in its `error`, in its first choice (Moonshot) or what that says, or in `x_groq`.
 */
export function usageIn(answer: JsonObject): FoundUsage | undefined {
  const { usage, response, error, choices, x_groq } = answer;
  const [choice] = Array.isArray(choices) ? choices : [];
  const { delta, message } = isJsonObject(choice) ? choice : {};
  const own = usageOf(usage);
  if (own) return own;
  for (const place of [response, error, choice, delta, message, x_groq]) {
    const found = isJsonObject(place) ? usageOf(place.usage) : undefined;
    if (found) return found;
  }
  return undefined;
}

function usageOf(object: JsonValue | undefined): FoundUsage | undefined {
  if (!isJsonObject(object)) return undefined;
  const response = usageOfResponse(object);
  const chat = usageOfChat(object);
  // Servers with both names for the same leave one of them at zero.
  const isChat = !response || (chat && chat.outputTokens > response.outputTokens);
  const usage = isChat ? chat : response;
  return usage && { object, usage };
}

/** What a protocol calls the parts of its usage. */
export interface UsageNames {
  input: string;
  output: string;
  inputDetails: string;
  outputDetails: string;
}

export const responseNames: UsageNames = {
  input: "input_tokens",
  output: "output_tokens",
  inputDetails: "input_tokens_details",
  outputDetails: "output_tokens_details",
};
export const chatNames: UsageNames = {
  input: "prompt_tokens",
  output: "completion_tokens",
  inputDetails: "prompt_tokens_details",
  outputDetails: "completion_tokens_details",
};

/** A usage object as OpenAI's servers give it: what is cached within the input, reasoning within the output, and a total that is both. */
export function plainUsage(usage: JsonObject, names: UsageNames): JsonObject {
  return withTotal(withReasoning(withCached(plainly(usage, names), names), names), names);
}

/** What was cached, where OpenAI has it: DeepSeek and Moonshot tell it beside the input that it is a part of. */
function withCached(usage: JsonObject, names: UsageNames): JsonObject {
  const found = usage[names.inputDetails];
  const details = isJsonObject(found) ? found : {};
  const told = usage.prompt_cache_hit_tokens ?? usage.cached_tokens;
  if (isPresent(details.cached_tokens) || !isCount(told)) return usage;
  const input = usage[names.input];
  const cached = isCount(input) ? Math.min(told, input) : told;
  return { ...usage, [names.inputDetails]: { ...details, cached_tokens: cached } };
}

/**
 * The usage with the reasoning in its output. Some servers (xAI, Gemini's compatible one) count it beside the output: it is
 * in their total alone, or is more than the output that it should be a part of.
 */
function withReasoning(usage: JsonObject, names: UsageNames): JsonObject {
  const { [names.input]: input, [names.output]: output, total_tokens: total } = usage;
  if (!isCount(input) || !isCount(output)) return usage;
  const details = usage[names.outputDetails];
  const nested = isJsonObject(details) ? details.reasoning_tokens : undefined;
  const reasoning = countOf(nested ?? usage.reasoning_tokens);
  const byTotal = isCount(total) ? total - input : 0;
  const byReasoning = isCount(reasoning) && reasoning > output ? output + reasoning : 0;
  const whole = Math.max(output, byTotal, byReasoning);
  return whole > output ? { ...usage, [names.output]: whole } : usage;
}

function withTotal(usage: JsonObject, names: UsageNames): JsonObject {
  const { [names.input]: input, [names.output]: output } = usage;
  if (!isCount(input) || !isCount(output) || usage.total_tokens === input + output) return usage;
  return { ...usage, total_tokens: input + output };
}

/** The usage with numbers that servers wrote as text, and with the part of a total that they left out. */
function plainly(
  found: JsonObject,
  { input: inputName, output: outputName }: UsageNames,
): JsonObject {
  const input = countOf(found[inputName]);
  const output = countOf(found[outputName]);
  const total = countOf(found.total_tokens);
  const told: JsonObject = {};
  if (input !== found[inputName] && input !== undefined) told[inputName] = input;
  if (output !== found[outputName] && output !== undefined) told[outputName] = output;
  if (total !== found.total_tokens && total !== undefined) told.total_tokens = total;
  if (isCount(total)) {
    // A total that is the input alone does not say that the output, of which nothing is said, was none.
    if (!isPresent(output) && isCount(input) && total > input) told[outputName] = total - input;
    if (!isPresent(input) && isCount(output) && total > output) told[inputName] = total - output;
  }
  return Object.keys(told).length > 0 ? { ...found, ...told } : found;
}

/** A number of tokens that was written as text; anything else as it is. */
function countOf(value: JsonValue | undefined): JsonValue | undefined {
  return typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
}

function isCount(value: JsonValue | undefined): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function reported(found: JsonValue | undefined, names: UsageNames): ReportedUsage | undefined {
  if (!isJsonObject(found)) return undefined;
  const usage = plainUsage(found, names);
  const { input, output } = names;
  const isWhole = isPresent(usage[input]) && isPresent(usage[output]);
  if (!isWhole) return undefined;
  const detail = usage[names.inputDetails];
  const cached = isJsonObject(detail) ? detail.cached_tokens : undefined;
  const outputDetail = usage[names.outputDetails];
  const reasoning = isJsonObject(outputDetail) ? outputDetail.reasoning_tokens : undefined;
  return {
    inputTokens: numberOf(usage[input]),
    cachedInputTokens: isPresent(cached) ? numberOf(cached) : 0,
    outputTokens: numberOf(usage[output]),
    ...(isPresent(reasoning) ? { reasoningTokens: numberOf(reasoning) } : {}),
  };
}

function isPresent(value: JsonValue | undefined): boolean {
  return value !== undefined && value !== null;
}

function numberOf(value: JsonValue | undefined): number {
  const count = countOf(value);
  return typeof count === "number" ? count : Number.NaN;
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
export function completeUsage(found: JsonValue | undefined): JsonValue {
  if (!isJsonObject(found)) return null;
  const usage = plainUsage(found, responseNames);
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
