// Reads the usage that servers report, in all the forms that they have for it, and writes it in that of the API. Whether it is
// believed is decided by the text service.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { type Fields, only } from "./allowed.ts";
import { usageInMessage } from "./anthropic/usage.ts";
import type { ReportedUsage, UsageDetails } from "./port.ts";

/**
 * Usage of a Responses object. Undefined where none was reported. A value that is no number becomes NaN, so that it is noticed and not
 * guessed.
 */
export function usageOfResponse(usage: JsonValue | undefined): ReportedUsage | undefined {
  return reported(usage, responseNames, {});
}

/** Usage of a chat completion, like {@link usageOfResponse}. */
export function usageOfChat(usage: JsonValue | undefined): ReportedUsage | undefined {
  return reported(usage, chatNames, {});
}

/** Usage as the upstream reported it, and the numbers in it. */
export interface FoundUsage {
  object: JsonObject;
  usage: ReportedUsage;
}

/**
 * Usage in an answer, event or error of every protocol, of any type. It may be in the `response`, in the `error`, in the first choice
 * (Moonshot) or its message, or in `x_groq`. Undefined where none of these has a complete one.
 */
export function usageIn(answer: JsonObject): FoundUsage | undefined {
  const ofMessage = usageInMessage(answer);
  if (ofMessage) return usageOf(ofMessage, answer);
  const { usage, response, error, choices, x_groq } = answer;
  const [choice] = Array.isArray(choices) ? choices : [];
  const { delta, message } = isJsonObject(choice) ? choice : {};
  const own = usageOf(usage, answer);
  if (own) return own;
  for (const place of [response, error, choice, delta, message, x_groq]) {
    const around = place === response ? response : answer;
    const found =
      isJsonObject(place) && isJsonObject(around) ? usageOf(place.usage, around) : undefined;
    if (found) return found;
  }
  return undefined;
}

/** `around`: the answer, chunk or response that the usage is about. */
function usageOf(object: JsonValue | undefined, around: JsonObject): FoundUsage | undefined {
  if (!isJsonObject(object)) return undefined;
  const response = reported(object, responseNames, around);
  const chat = reported(object, chatNames, around);
  // Servers with two names for the same number leave one of them at zero.
  const isChat = !response || (chat && chat.outputTokens > response.outputTokens);
  const usage = isChat ? chat : response;
  return usage && { object, usage };
}

/** The names of a protocol for the parts of its usage. */
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

/**
 * A usage object in the form of OpenAI's servers. Cached tokens are a part of the input, reasoning is a part of the output, and the
 * total is both.
 */
export function plainUsage(usage: JsonObject, names: UsageNames): JsonObject {
  return isInPlainForm(usage, names) ? usage : inPlainForm(usage, names);
}

/** Has it that form already? Most reports have. */
function isInPlainForm(usage: JsonObject, names: UsageNames): boolean {
  const { [names.input]: input, [names.output]: output, total_tokens: total } = usage;
  if (!isCount(input) || !isCount(output) || total !== input + output) return false;
  const beside = usage.prompt_cache_hit_tokens ?? usage.cached_tokens ?? usage.reasoning_tokens;
  if (beside !== undefined) return false;
  const details = usage[names.outputDetails];
  const reasoning = isJsonObject(details) ? details.reasoning_tokens : undefined;
  return reasoning === undefined || (typeof reasoning === "number" && reasoning <= output);
}

function inPlainForm(usage: JsonObject, names: UsageNames): JsonObject {
  return withTotal(withReasoning(withCached(plainly(usage, names), names), names), names);
}

/** The usage with cached tokens in OpenAI's place. DeepSeek and Moonshot report them beside the input of which they are a part. */
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
 * The usage with the reasoning in its output. Some servers (xAI, Gemini's compatible one) count reasoning beside the output. It is then
 * in their total alone, or is more than the output.
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

/** The usage with numbers that servers wrote as text, and with a part that they left out of a total. */
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
    // A total equal to the input does not mean that an unreported output was empty.
    if (!isPresent(output) && isCount(input) && total > input) told[outputName] = total - input;
    if (!isPresent(input) && isCount(output) && total > output) told[inputName] = total - output;
  }
  return Object.keys(told).length > 0 ? { ...found, ...told } : found;
}

/** A number of tokens that was written as text. Any other value stays unchanged. */
function countOf(value: JsonValue | undefined): JsonValue | undefined {
  return typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
}

function isCount(value: JsonValue | undefined): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function reported(
  found: JsonValue | undefined,
  names: UsageNames,
  around: JsonObject,
): ReportedUsage | undefined {
  const { input, output } = names;
  // Most reports have the names of one protocol.
  if (!isJsonObject(found) || !(isPresent(found[input]) || isPresent(found[output]))) {
    return undefined;
  }
  const usage = plainUsage(found, names);
  const isWhole = isPresent(usage[input]) && isPresent(usage[output]);
  if (!isWhole) return undefined;
  const detail = usage[names.inputDetails];
  const cached = isJsonObject(detail) ? detail.cached_tokens : undefined;
  const outputDetail = usage[names.outputDetails];
  const reasoning = isJsonObject(outputDetail) ? outputDetail.reasoning_tokens : undefined;
  const details = hasDetails(usage, around, names) ? detailsIn(usage, around, names) : undefined;
  return {
    inputTokens: numberOf(usage[input]),
    cachedInputTokens: isPresent(cached) ? numberOf(cached) : 0,
    outputTokens: numberOf(usage[output]),
    ...(isPresent(reasoning) ? { reasoningTokens: numberOf(reasoning) } : {}),
    ...(details && { details }),
  };
}

/** Details that cost no more than the tokens of which they are a part. */
const plainDetails: ReadonlySet<string> = new Set([
  "accepted_prediction_tokens",
  "cached_tokens",
  "reasoning_tokens",
  "rejected_prediction_tokens",
  "text_tokens",
]);
/** Other places of a usage, and of the answer around it, with parts that may have prices of their own. */
const pricedPlaces = [
  "cost",
  "costUsdMicros",
  "cost_in_usd_ticks",
  "num_server_side_tools_used",
  "server_tool_use",
  "server_tool_use_details",
  "service_tier",
  "tool_usage",
];

/** Does a report have parts that may have prices of their own? Most have none. */
function hasDetails(usage: JsonObject, around: JsonObject, names: UsageNames): boolean {
  if (hasMore(usage[names.inputDetails]) || hasMore(usage[names.outputDetails])) return true;
  for (const name of pricedPlaces) {
    if ((usage[name] ?? around[name] ?? null) !== null) return true;
  }
  return false;
}

function hasMore(details: JsonValue | undefined): boolean {
  if (!isJsonObject(details)) return false;
  for (const name in details) {
    if (!plainDetails.has(name) && details[name] !== 0 && details[name] !== null) return true;
  }
  return false;
}

/** The parts of a report that may have prices of their own. Undefined where it has none. */
function detailsIn(
  usage: JsonObject,
  around: JsonObject,
  names: UsageNames,
): UsageDetails | undefined {
  const input = within(usage, names.inputDetails);
  const output = within(usage, names.outputDetails);
  const split = within(input, "cache_write_tokens_details");
  const long = split.ttl_12h_tokens;
  const tools = isJsonObject(usage.tool_usage) ? usage.tool_usage : within(around, "tool_usage");
  const drawn = within(tools, "image_gen").output_tokens;
  const found: Record<keyof UsageDetails, unknown> = {
    cacheWrite: sumIn(input.cache_write_tokens) ?? sumIn(split.ttl_30m_tokens, long),
    cacheWriteLong: isPresent(long) ? numberOf(long) : undefined,
    audioInput: sumIn(input.audio_tokens),
    cachedAudioInput: sumIn(within(input, "cached_tokens_details").audio_tokens),
    imageInput: sumIn(input.image_tokens, input.video_tokens),
    audioOutput: sumIn(output.audio_tokens),
    imageOutput: sumIn(output.image_tokens) ?? sumIn(drawn),
    toolCalls: callsIn(usage, tools),
    unnamedCalls: sumIn(usage.num_server_side_tools_used),
    servedTier: tierIn(usage.service_tier ?? around.service_tier),
    costUsdMicros: costIn(usage),
  };
  const told = Object.entries(found).filter(([, part]) => part !== undefined);
  return told.length > 0 ? Object.fromEntries(told) : undefined;
}

function within(object: JsonObject, name: string): JsonObject {
  const value = object[name];
  return isJsonObject(value) ? value : {};
}

/** The sum of the numbers. Undefined where it is 0, or none is there. */
function sumIn(...values: (JsonValue | undefined)[]): number | undefined {
  const sum = values.filter(isPresent).reduce<number>((all, value) => all + numberOf(value), 0);
  return sum === 0 ? undefined : sum;
}

/** Calls that a report counts by their tool: searches of Anthropic, OpenRouter and OpenAI, and Anthropic's fetches. */
function callsIn(usage: JsonObject, tools: JsonObject): UsageDetails["toolCalls"] {
  const server = within(usage, "server_tool_use");
  const searches =
    sumIn(server.web_search_requests) ??
    sumIn(within(usage, "server_tool_use_details").web_search_requests) ??
    sumIn(within(tools, "web_search").num_requests);
  const fetches = sumIn(server.web_fetch_requests);
  if (searches === undefined && fetches === undefined) return undefined;
  return {
    ...(searches !== undefined && { web_search: searches }),
    ...(fetches !== undefined && { web_fetch: fetches }),
  };
}

function tierIn(tier: JsonValue | undefined): string | undefined {
  return typeof tier === "string" && /^[\w-]{1,64}$/.test(tier) ? tier : undefined;
}

/**
 * USD micros that the upstream charged: a genmesh's own figure, xAI's ticks of 10^-10 dollars, or OpenRouter's dollars. Where the
 * operator's own key pays a provider behind OpenRouter, that provider's price is added.
 */
function costIn(usage: JsonObject): number | undefined {
  const { costUsdMicros, cost_in_usd_ticks: ticks, cost } = usage;
  if (isCount(costUsdMicros)) return costUsdMicros;
  if (isCount(ticks)) return Math.ceil(ticks / 10_000);
  const { upstream_inference_cost: behind } = within(usage, "cost_details");
  const added = usage.is_byok === true && typeof behind === "number" ? behind : 0;
  if (typeof cost !== "number") return undefined;
  // Dollars are decimals. Their digits behind the tenth are noise of the floating point.
  const micros = Math.ceil(Number(((cost + added) * 1_000_000).toFixed(4)));
  return isCount(micros) ? micros : undefined;
}

function isPresent(value: JsonValue | undefined): boolean {
  return value !== undefined && value !== null;
}

function numberOf(value: JsonValue | undefined): number {
  if (typeof value === "number") return value;
  const count = countOf(value);
  return typeof count === "number" ? count : Number.NaN;
}

/** Numbers of tokens. Additions of servers (their own costs and times) are for the operator alone. */
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
  // Set by genmesh, and so by an upstream that is a genmesh: the tokens were counted, not reported.
  estimated: "plain",
};

/** A Responses usage object with the fields that clients rely on. Null stays null. */
export function completeUsage(found: JsonValue | undefined): JsonValue {
  if (!isJsonObject(found)) return null;
  const usage = plainUsage(found, responseNames);
  const input = typeof usage.input_tokens === "number" ? usage.input_tokens : 0;
  const output = typeof usage.output_tokens === "number" ? usage.output_tokens : 0;
  const shown = only(usage, usageFields);
  const { input_tokens_details: ofInput, output_tokens_details: ofOutput } = shown;
  return {
    input_tokens: input,
    output_tokens: output,
    total_tokens: input + output,
    ...shown,
    input_tokens_details: { cached_tokens: 0, ...(isJsonObject(ofInput) && ofInput) },
    output_tokens_details: { reasoning_tokens: 0, ...(isJsonObject(ofOutput) && ofOutput) },
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
