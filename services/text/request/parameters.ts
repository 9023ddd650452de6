// Lists the properties of a request that are sent to the upstream. `nested-names.ts` lists those deeper in a body.

import type { JsonObject, JsonValue } from "#kit/base/json.ts";
import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { outputBounds } from "../../upstreams/text/output-limit.ts";
import type { TextOperation } from "../../upstreams/text/port.ts";

/**
 * Properties of a request that are sent to the upstream, by the caller's protocol. It is an allow list, because model servers know many
 * more. Some of those show the operator's prompt (`echo`, `return_token_ids`) or replace it (`chat_template`). Others cost the operator
 * money or places in a queue (`priority`, `best_of`).
 */
const passed: Readonly<Record<"responses" | "chat" | "messages", ReadonlySet<string>>> = {
  responses: new Set([
    // `ResponseCreateParams` of the openai package, 7.57, without names of state at the upstream (operator-state.ts). `access_programs`
    // and `moderation` are missing, because they are about the operator's account. `prompt_cache_options` is sent where a longer cache
    // has a price.
    "context_management",
    "image",
    "include",
    "input",
    "instructions",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
  ]),
  chat: new Set([
    // `ChatCompletionCreateParams` of the same package, without `audio`, which is refused, and `moderation`.
    // `prediction` is missing, because tokens of a rejected one are charged as output beyond its bound.
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "messages",
    "metadata",
    "modalities",
    "model",
    "n",
    "parallel_tool_calls",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
    // Reasoning in the form of Ollama and OpenRouter for chat.
    "reasoning",
  ]),
  messages: new Set([
    // `MessageCreateParams` of the Anthropic SDK, 1.14, without what is refused, and what is of the operator's account. `metadata` is
    // missing, because it names the caller's users.
    "cache_control",
    "context_management",
    "messages",
    "model",
    "output_config",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
    // Set by the check, in the words of Responses.
    "prompt_cache_key",
    "reasoning",
    "service_tier",
    "store",
  ]),
};

/** Parameters of sampling, under the names of vLLM, SGLang, llama.cpp and OpenRouter. */
const sampling: ReadonlySet<string> = new Set([
  // Open Responses, and Chat Completions.
  "frequency_penalty",
  "presence_penalty",
  "seed",
  // vLLM and SGLang: sampling parameters of their OpenAI-compatible servers.
  "min_p",
  "min_tokens",
  "repetition_penalty",
  "top_k",
  // llama.cpp: options of a completion.
  "dry_allowed_length",
  "dry_base",
  "dry_multiplier",
  "dry_penalty_last_n",
  "dynatemp_exponent",
  "dynatemp_range",
  "mirostat",
  "mirostat_eta",
  "mirostat_tau",
  "repeat_last_n",
  "repeat_penalty",
  "top_n_sigma",
  "typical_p",
  "xtc_probability",
  "xtc_threshold",
  // OpenRouter.
  "top_a",
]);

/** The name of the bound at the upstream is decided later, by the name that the upstream knows. */
const bounds: ReadonlySet<string> = new Set(outputBounds);

/**
 * The properties of a body that may be sent to an upstream. The upstream's protocol decides which of them are sent: see
 * `services/upstreams/text/ignored.ts`.
 */
export function passedOf(
  body: JsonObject,
  operation: TextOperation,
  { passParameters, prices }: ChatSpec,
): JsonObject {
  const isOwn = operation === "chat" || operation === "messages";
  const ofTheApi = passed[isOwn ? operation : "responses"];
  const passesAll = passParameters.includes("*");
  const kept: JsonObject = {};
  for (const name in body) {
    const isKnown = ofTheApi.has(name) || sampling.has(name) || bounds.has(name);
    // A longer cache is sent where it has a price.
    const isPriced = name === "prompt_cache_options" && prices?.base?.cacheWriteLong !== undefined;
    if (isKnown || isPriced || passesAll || passParameters.includes(name)) {
      kept[name] = body[name] as JsonValue;
    }
  }
  return kept;
}
