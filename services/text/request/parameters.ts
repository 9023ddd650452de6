import type { JsonObject } from "#kit/base/json.ts";
import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { outputBounds } from "../../upstreams/text/output-limit.ts";
import type { TextOperation } from "../../upstreams/text/port.ts";

/**
 * Properties of a request that go upstream, by the protocol that the caller speaks. An allow list: model servers know many
 * more, and some of those give the operator's prompt away (`echo`, `return_token_ids`), replace it (`chat_template`), or
 * spend the operator's money or place in a queue (`priority`, `best_of`).
 */
const passed: Readonly<Record<"responses" | "chat", ReadonlySet<string>>> = {
  responses: new Set([
    // `ResponseCreateParams` of the openai package, 7.57. Without what names state upstream (operator-state.ts), and without
    // `access_programs` and `moderation`, which speak of the operator's account there, and `prompt_cache_options`: what is kept
    // for longer is written apart in the usage, and priced apart.
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
    // `ChatCompletionCreateParams` of the same package, without `audio`, which is refused, `moderation`, `prompt_cache_options`, and `prediction`:
    // tokens of a rejected one are charged as output beyond its bound.
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
    // Reasoning as Ollama and OpenRouter have it in chat.
    "reasoning",
  ]),
};

/** How the next token is drawn, in the names that vLLM, SGLang, llama.cpp and OpenRouter have for it. */
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

/** Does a property of this name go upstream? */
function isPassed(name: string, api: "responses" | "chat", spec: ChatSpec): boolean {
  return (
    passed[api].has(name) ||
    sampling.has(name) ||
    // What the bound is called upstream is decided there, by what the upstream knows.
    outputBounds.some((bound) => bound === name) ||
    spec.passParameters.includes(name) ||
    spec.passParameters.includes("*")
  );
}

/** What of a body may go upstream. What really does is the upstream's protocol to say; see `services/upstreams/text/ignored.ts`. */
export function passedOf(body: JsonObject, operation: TextOperation, spec: ChatSpec): JsonObject {
  const api = operation === "chat" ? "chat" : "responses";
  const kept: JsonObject = {};
  for (const [name, value] of Object.entries(body)) {
    if (isPassed(name, api, spec)) kept[name] = value;
  }
  return kept;
}
