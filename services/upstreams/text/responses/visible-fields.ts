// The lists of fields that callers of Responses see of an upstream's answers.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";

/**
 * Fields of a response object that callers see with the upstream's values: those of `Response` in the openai package, 7.57, and of Open
 * Responses. Left out are fields that genmesh always sets (id, instructions, model, store) and those of state at the upstream
 * (conversation, prompt, previous_response_id). Left out are also the upstream's words (error) and fields about the operator's account
 * (access_programs, moderation). All other fields are hidden: servers add fields that repeat their request, and the developer prompt
 * with it.
 */
export const responseFields: ReadonlySet<string> = new Set([
  "created_at",
  "background",
  "completed_at",
  "frequency_penalty",
  "image",
  "incomplete_details",
  "max_output_tokens",
  "max_tool_calls",
  "metadata",
  "output",
  "parallel_tool_calls",
  "presence_penalty",
  "prompt_cache_key",
  "prompt_cache_options",
  "prompt_cache_retention",
  "reasoning",
  "safety_identifier",
  "service_tier",
  "temperature",
  "text",
  "tool_choice",
  "tool_usage",
  "tools",
  "top_logprobs",
  "top_p",
  "truncation",
  "user",
]);

/** Fields of the events that the openai package, 7.57, knows. */
const eventFields: ReadonlySet<string> = new Set([
  "annotation",
  "annotation_index",
  "arguments",
  "code",
  "command",
  "command_index",
  "content_index",
  "delta",
  "input",
  "item",
  "item_id",
  "logprobs",
  "obfuscation",
  "output_index",
  "part",
  "partial_image_b64",
  "partial_image_index",
  "refusal",
  "response",
  "sequence_number",
  "status",
  "summary_index",
  "text",
  "type",
]);

/** The fields of a delta. Callers see all of them. */
const bareFields: ReadonlySet<string> = new Set([
  "content_index",
  "delta",
  "item_id",
  "logprobs",
  "obfuscation",
  "output_index",
  "sequence_number",
  "summary_index",
  "type",
]);

/**
 * Has an event of the Responses protocol the fields of a delta alone, each with a text, a number or an empty list? Then a search for
 * usage, depth, pieces, hidden fields or arguments finds nothing.
 */
export function isBare(event: JsonObject): boolean {
  for (const name in event) {
    if (!bareFields.has(name)) return false;
    const value = event[name];
    if (typeof value === "string" || typeof value === "number") continue;
    if (!Array.isArray(value) || value.length > 0) return false;
  }
  return true;
}

/**
 * Removes fields from an event that callers do not see. Fields unknown to the API that hold the developer prompt go, and every unknown
 * field beside a `response`. The text of known fields is the model's. Changes `event`. True where that changed it.
 */
export function takeOut(event: JsonObject, prompt: string): boolean {
  let isChanged = false;
  for (const name of Object.keys(event)) {
    if (eventFields.has(name)) continue;
    if (!isJsonObject(event.response) && !holds(event[name] as JsonValue, prompt)) continue;
    delete event[name];
    isChanged = true;
  }
  return isChanged;
}

function holds(value: JsonValue, prompt: string): boolean {
  if (prompt === "") return false;
  if (typeof value === "string") return value.includes(prompt);
  if (typeof value !== "object" || value === null) return false;
  return Object.values(value).some((inner) => holds(inner, prompt));
}
