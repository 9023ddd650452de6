// Puts the bound of the output into a request under the name that its upstream knows.

import type { JsonObject } from "#kit/base/json.ts";
import { OutputLimit } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";

/** The names that servers use for the bound of an answer's output. */
export const outputBounds = ["max_output_tokens", "max_completion_tokens", "max_tokens"] as const;
type Name = (typeof outputBounds)[number];

/**
 * The names that servers of an API know, where the catalog does not say. For Chat Completions it is the older `max_tokens`. Servers
 * like vLLM, llama.cpp, Ollama, LM Studio, OpenRouter and most others take it, while many of them silently ignore
 * `max_completion_tokens`. OpenAI's own reasoning models refuse `max_tokens`, which an operator sees at the first request.
 */
const usualNames: Readonly<Record<"responses" | "chat", Name>> = {
  responses: "max_output_tokens",
  chat: "max_tokens",
};

const namesInCatalog = new Map<OutputLimit, Name | undefined>([
  [OutputLimit.MAX_TOKENS, "max_tokens"],
  [OutputLimit.MAX_COMPLETION_TOKENS, "max_completion_tokens"],
  [OutputLimit.MAX_OUTPUT_TOKENS, "max_output_tokens"],
  [OutputLimit.NONE, undefined],
]);

/**
 * An upstream's body with the bound of its output under the one name that this upstream knows, and under no other. It is always the
 * bound that was paid for, with any name that the caller wrote. `limit` undefined: no bound is sent.
 */
export function withOutputLimit(
  body: JsonObject,
  limit: number | undefined,
  api: "responses" | "chat",
  configured: OutputLimit = OutputLimit.UNSPECIFIED,
): JsonObject {
  const told: JsonObject = { ...body };
  for (const name of outputBounds) delete told[name];
  const name = namesInCatalog.has(configured) ? namesInCatalog.get(configured) : usualNames[api];
  if (name !== undefined && limit !== undefined) told[name] = limit;
  return told;
}
