// Reads the usage of Messages in the form of Responses, which all metering reads.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";

/** The type of a turn of the model's own whose tokens are beside the sums of a usage. */
const beside = "compaction";

/**
 * The usage of a message in the form of Responses. There the input has in it what was read from a cache and written to one, which
 * Messages count beside it. Undefined where no input was reported.
 */
export function responsesUsage(usage: JsonValue | undefined): JsonObject | undefined {
  if (!isJsonObject(usage) || (usage.input_tokens ?? null) === null) return undefined;
  const more = Array.isArray(usage.iterations) ? usage.iterations.filter(isJsonObject) : [];
  const turns = [usage, ...more.filter(({ type }) => type === beside)];
  const sum = (...names: string[]) =>
    turns.reduce((all, turn) => names.reduce((part, name) => part + countOf(turn[name]), all), 0);
  const written = sum("cache_creation_input_tokens");
  const splits = turns.map(({ cache_creation: split }) => split).filter(isJsonObject);
  const long = splits.reduce((all, split) => all + countOf(split.ephemeral_1h_input_tokens), 0);
  const { server_tool_use: calls, service_tier: tier, speed } = usage;
  const thinking = isJsonObject(usage.output_tokens_details)
    ? (usage.output_tokens_details.thinking_tokens ?? null)
    : null;
  return {
    input_tokens: shown(
      sum("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
    ),
    input_tokens_details: {
      cached_tokens: shown(sum("cache_read_input_tokens")),
      cache_write_tokens: shown(written),
      ...(splits.length > 0 && { cache_write_tokens_details: { ttl_12h_tokens: shown(long) } }),
    },
    output_tokens: shown(sum("output_tokens")),
    output_tokens_details: { reasoning_tokens: thinking ?? 0 },
    ...(isJsonObject(calls) && { server_tool_use: calls }),
    ...(speed === "fast" ? { service_tier: speed } : tier ? { service_tier: tier } : {}),
  };
}

/** A message, and the events of its stream that tell of its usage. */
const usageTypes: ReadonlySet<JsonValue | undefined> = new Set([
  ...["message", "message_start", "message_delta"],
]);

/**
 * The usage in a message or an event of its stream, in the form of Responses. Undefined for anything else. A later event may leave the
 * input out, which is none more than the earlier one told.
 */
export function usageInMessage(answer: JsonObject): JsonObject | undefined {
  if (!usageTypes.has(answer.type)) return undefined;
  const { usage } = isJsonObject(answer.message) ? answer.message : answer;
  if (!isJsonObject(usage)) return undefined;
  const { input_tokens: input, ...more } = usage;
  return responsesUsage({ ...more, input_tokens: input ?? 0 });
}

/** The usage of a message after a later report. A null says nothing, and a later report has no split of what was written. */
export function laterUsage(before: JsonObject, more: JsonValue | undefined): JsonObject {
  const told = isJsonObject(more) ? Object.entries(more).filter(([, value]) => value !== null) : [];
  return { ...before, ...Object.fromEntries(told) };
}

function countOf(value: JsonValue | undefined): number {
  if (value === undefined || value === null) return 0;
  return typeof value === "number" ? value : Number.NaN;
}

/** A number as JSON can have it. A value that was none is noticed as such when the usage is read. */
function shown(count: number): JsonValue {
  return Number.isFinite(count) ? count : "unreadable";
}
