// Writes usage in the form of Messages, of usage in the form of Responses or Chat Completions.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { chatNames, completeUsage } from "../usage.ts";

/** The numbers of a usage in the form of Messages. */
interface MessageTokens {
  /** All input, cached and written tokens included. */
  input: number;
  cached: number;
  written: number;
  output: number;
  thinking: number;
}

/**
 * The `usage` of a message with every field. Messages counts input without the tokens that were read from a cache, or written to it.
 */
export function messageUsage({
  input,
  cached,
  written,
  output,
  thinking,
}: MessageTokens): JsonObject {
  return {
    input_tokens: Math.max(0, input - cached - written),
    cache_creation_input_tokens: written,
    cache_read_input_tokens: cached,
    cache_creation: { ephemeral_5m_input_tokens: written, ephemeral_1h_input_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { thinking_tokens: thinking },
    server_tool_use: null,
    service_tier: null,
  };
}

/** The usage before anything is known of it. */
export const noUsage: JsonObject = messageUsage({
  ...{ input: 0, cached: 0, written: 0, output: 0, thinking: 0 },
});

/** The usage of a chat completion in the form of Messages. Undefined where there is none. */
export function messageUsageOfChat(usage: JsonObject | undefined): JsonObject | undefined {
  return (
    usage &&
    messageUsageOf({
      ...{ input_tokens: usage[chatNames.input] ?? 0, output_tokens: usage[chatNames.output] ?? 0 },
      input_tokens_details: usage[chatNames.inputDetails] ?? {},
      output_tokens_details: usage[chatNames.outputDetails] ?? {},
      ...(usage.estimated === undefined ? {} : { estimated: usage.estimated }),
    })
  );
}

/** The usage object of a response in the form of Messages. Undefined where there is none. */
export function messageUsageOf(usage: JsonValue | undefined): JsonObject | undefined {
  const whole = completeUsage(usage ?? null);
  if (!isJsonObject(whole)) return undefined;
  const input = whole.input_tokens_details as JsonObject;
  const output = whole.output_tokens_details as JsonObject;
  return {
    ...messageUsage({
      input: Number(whole.input_tokens),
      cached: countOf(input.cached_tokens),
      written: countOf(input.cache_write_tokens),
      output: Number(whole.output_tokens),
      thinking: countOf(output.reasoning_tokens),
    }),
    ...(whole.estimated === undefined ? {} : { estimated: whole.estimated }),
  };
}

function countOf(value: JsonValue | undefined): number {
  return typeof value === "number" && value > 0 ? value : 0;
}
