// The lists of fields that callers of Chat Completions see of an upstream's answers, and the plain form of a message in them.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { type Fields, fits, only } from "../allowed.ts";
import { withArgumentsText } from "../call-arguments.ts";
import { chatNames, plainUsage } from "../usage.ts";

/**
 * Fields of chat answers and chunks that callers see: those of `ChatCompletion` and `ChatCompletionChunk` in the openai package, 7.57,
 * without audio and moderation. There is also reasoning in the form of most servers, and the state that servers want back in the next
 * turn. All other fields are hidden: servers add fields that repeat their request, and the developer prompt with it.
 */
const usage: Fields = {
  prompt_tokens: "plain",
  completion_tokens: "plain",
  total_tokens: "plain",
  prompt_tokens_details: {
    audio_tokens: "plain",
    cache_write_tokens: "plain",
    cached_tokens: "plain",
    image_tokens: "plain",
    text_tokens: "plain",
  },
  completion_tokens_details: {
    accepted_prediction_tokens: "plain",
    audio_tokens: "plain",
    image_tokens: "plain",
    reasoning_tokens: "plain",
    rejected_prediction_tokens: "plain",
    text_tokens: "plain",
  },
  // Set by genmesh, and so by an upstream that is a genmesh: the tokens were counted, not reported.
  estimated: "plain",
};

const googleState: Fields = { thought: "plain", thought_signature: "plain" };
/** State that Gemini's OpenAI-compatible servers want back beside a text or a call, under the names of AI Studio and Vertex. */
const wantedBack: Fields = {
  extra_content: { google: googleState, vertex: googleState },
  thought_signature: "plain",
};
/** Reasoning in the form in which OpenRouter wants it back. */
const reasoningDetail: Fields = {
  type: "plain",
  id: "plain",
  format: "plain",
  index: "plain",
  text: "plain",
  summary: "plain",
  data: "plain",
  signature: "plain",
};
const call: Fields = { name: "plain", arguments: "plain", thought_signature: "plain" };
const toolCall: Fields = {
  index: "plain",
  id: "plain",
  type: "plain",
  function: call,
  custom: { name: "plain", input: "plain" },
  ...wantedBack,
};

/** Fields of a message, and of a delta. */
export const messageFields: Fields = {
  role: "plain",
  content: "plain",
  refusal: "plain",
  reasoning_content: "plain",
  reasoning_details: [reasoningDetail],
  annotations: [
    {
      type: "plain",
      url_citation: { start_index: "plain", end_index: "plain", title: "plain", url: "plain" },
    },
  ],
  function_call: call,
  tool_calls: [toolCall],
  ...wantedBack,
};

const alternativeFields: Fields = { token: "plain", bytes: "list", logprob: "plain" };
/** Fields of one token's log probabilities. */
export const tokenFields: Fields = { ...alternativeFields, top_logprobs: [alternativeFields] };
/** Fields of the log probabilities of a choice. */
export const logprobFields: Fields = { content: [tokenFields], refusal: [tokenFields] };
const choice: Fields = {
  index: "plain",
  finish_reason: "plain",
  logprobs: logprobFields,
};
const head: Fields = {
  id: "plain",
  object: "plain",
  created: "plain",
  model: "plain",
  service_tier: "plain",
  system_fingerprint: "plain",
  usage,
};

/** Fields of a completion. */
export const completionFields: Fields = {
  ...head,
  choices: [{ ...choice, message: messageFields }],
};
/** Fields of a chunk. */
export const chunkFields: Fields = {
  ...head,
  choices: [{ ...choice, delta: messageFields }],
  // Padding that hides the length of a delta.
  obfuscation: "plain",
};

/** Fields of a chunk that has text, and nothing else that the upstream generated or reported. */
const simpleChunkFields: Fields = {
  ...head,
  usage: "plain",
  obfuscation: "plain",
  choices: [
    {
      index: "plain",
      finish_reason: "plain",
      logprobs: "plain",
      delta: { role: "plain", content: "plain", refusal: "plain" },
    },
  ],
};

/**
 * Is it a chunk of one choice with text alone, in the form that callers see? Then a search for usage, depth, pieces, reasoning, calls or
 * hidden fields finds nothing.
 */
export function isSimpleChunk(chunk: JsonObject): boolean {
  const { object, choices } = chunk;
  const isChunk = object === "chat.completion.chunk" && Array.isArray(choices);
  return isChunk && choices.length === 1 && fits(chunk, simpleChunkFields);
}

/** Fields of a completion's usage that callers see. */
export function shownUsage(found: JsonObject): JsonObject {
  return only(plainUsage(found, chatNames), usage);
}

/** A message or delta with its reasoning, text and arguments in the form that callers see. The same object where it had that form. */
export function plainlySaid(said: JsonObject): JsonObject {
  const calls = Array.isArray(said.tool_calls) ? said.tool_calls.map(plainCall) : [];
  const isPlain = calls.every((call, at) => call === (said.tool_calls as JsonValue[])[at]);
  const call = isJsonObject(said.function_call)
    ? withArgumentsText({ function: said.function_call }).function
    : undefined;
  const plain = "reasoning" in said || Array.isArray(said.content) ? plainWords(said) : said;
  const changed: JsonObject = {};
  if (!isPlain) changed.tool_calls = calls;
  if (call !== undefined && call !== said.function_call) changed.function_call = call;
  return Object.keys(changed).length > 0 ? { ...plain, ...changed } : plain;
}

function plainCall(call: JsonValue): JsonValue {
  return isJsonObject(call) ? withArgumentsText(call) : call;
}

function plainWords(said: JsonObject): JsonObject {
  const { reasoning, ...rest } = said;
  const plain: JsonObject = { ...rest };
  // One of two names for the same text. Some servers send both.
  if (typeof reasoning === "string") plain.reasoning_content ??= reasoning;
  if (!Array.isArray(said.content)) return plain;
  // Mistral's servers stream reasoning and text as parts.
  const parts = said.content.filter(isJsonObject);
  const thought = parts.filter(({ type }) => type === "thinking").map(({ thinking }) => thinking);
  const thoughtText = thought.map(textOf).join("");
  if (thoughtText !== "") plain.reasoning_content ??= thoughtText;
  plain.content = textOf(parts);
  return plain;
}

/** Text parts, joined. */
function textOf(parts: JsonValue | undefined): string {
  if (typeof parts === "string") return parts;
  const list = Array.isArray(parts) ? parts.filter(isJsonObject) : [];
  return list
    .map(({ type, text }) => (type === "text" && typeof text === "string" ? text : ""))
    .join("");
}
