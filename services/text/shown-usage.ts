import { isJsonObject, type JsonObject } from "#kit/json.ts";
import type { ChargedTokens } from "./pricing.ts";
import { dataOf } from "./replay/frames.ts";
import { dataFrame, typedFrame } from "./upstream/frame.ts";
import type { TextOperation } from "./upstream/port.ts";

/** Tokens that we counted, as the `usage` of an answer; `estimated` is a field of ours. */
export function estimatedUsage(operation: TextOperation, tokens: ChargedTokens): JsonObject {
  const { input, cachedInput, output } = tokens;
  const cached = { cached_tokens: cachedInput };
  const reasoning = { reasoning_tokens: 0 };
  const total = { total_tokens: input + output, estimated: true };
  if (operation === "chat") {
    return {
      prompt_tokens: input,
      completion_tokens: output,
      prompt_tokens_details: cached,
      completion_tokens_details: reasoning,
      ...total,
    };
  }
  return {
    input_tokens: input,
    output_tokens: output,
    input_tokens_details: cached,
    output_tokens_details: reasoning,
    ...total,
  };
}

/** A JSON answer that shows what we counted; as it is where `estimate` is undefined: upstream's own word holds. */
export function bodyWithUsage(
  operation: TextOperation,
  body: Uint8Array,
  estimate: ChargedTokens | undefined,
): Uint8Array {
  if (!estimate) return body;
  const answer: unknown = JSON.parse(Buffer.from(body).toString());
  if (!isJsonObject(answer)) return body;
  return Buffer.from(JSON.stringify({ ...answer, usage: estimatedUsage(operation, estimate) }));
}

/**
 * The frames that end a stream, with what we counted: in the response object, or, `inChunk`, in the usage chunk of a chat
 * stream, which is added where upstream sent none. As it is where `estimate` is undefined.
 */
export function lastFramesWithUsage(
  operation: TextOperation,
  frame: Uint8Array,
  estimate: ChargedTokens | undefined,
  inChunk: boolean,
): Uint8Array[] {
  const event = estimate && dataOf(frame);
  if (!estimate || !event) return [frame];
  const usage = estimatedUsage(operation, estimate);
  if (operation !== "chat") {
    const { type, response } = event;
    if (typeof type !== "string" || !isJsonObject(response)) return [frame];
    return [typedFrame({ ...event, response: { ...response, usage } })];
  }
  if (!inChunk || !Array.isArray(event.choices)) return [frame];
  const chunk = dataFrame({ ...event, choices: [], usage });
  return event.choices.length > 0 ? [frame, chunk] : [chunk];
}
