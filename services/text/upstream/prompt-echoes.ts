import type { JsonObject } from "#kit/json.ts";

/**
 * Fields of answers in which upstreams repeat what they were sent, the developer prompt with it, as text or as tokens:
 * Responses' own `input`, and what model servers add on request.
 */
export const promptEchoes: ReadonlySet<string> = new Set([
  "input",
  "input_messages",
  "previous_input_messages",
  "prompt",
  "prompt_text",
  "prompt_token_ids",
  "prompt_logprobs",
]);

/** Does the object have such a field? */
export function hasPromptEcho(object: JsonObject): boolean {
  for (const name in object) if (promptEchoes.has(name)) return true;
  return false;
}

/** The object without them. */
export function withoutPromptEchoes(object: JsonObject): JsonObject {
  if (!hasPromptEcho(object)) return object;
  return Object.fromEntries(Object.entries(object).filter(([name]) => !promptEchoes.has(name)));
}
