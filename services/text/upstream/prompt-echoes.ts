import { isJsonObject, type JsonObject } from "#kit/json.ts";

/**
 * Fields of answers in which upstreams repeat what they were sent, the developer prompt with it, as text or as tokens:
 * Responses' own `input`, and what model servers and routers add on request (a caller's unknown properties go up).
 */
export const promptEchoes: ReadonlySet<string> = new Set([
  "input",
  "input_messages",
  "previous_input_messages",
  "prompt",
  "prompt_text",
  "prompt_token_ids",
  "prompt_logprobs",
  "debug",
  "__verbose",
]);

/** Does the object have such a field? */
export function hasPromptEcho(object: JsonObject): boolean {
  for (const name in object) if (promptEchoes.has(name) || isExtension(name)) return true;
  return false;
}

/** The object without them. */
export function withoutPromptEchoes(object: JsonObject): JsonObject {
  if (!hasPromptEcho(object)) return object;
  const kept: [string, JsonObject[string]][] = [];
  for (const [name, value] of Object.entries(object)) {
    if (promptEchoes.has(name)) continue;
    const isVendors = isExtension(name) && isJsonObject(value);
    kept.push([name, isVendors ? withoutPromptEchoes(value) : value]);
  }
  return Object.fromEntries(kept);
}

/** An event without them; `input` is there what a model says to a tool. */
export function withoutEventEchoes(event: JsonObject): JsonObject {
  const { input, ...rest } = event;
  const kept = withoutPromptEchoes(rest);
  if (kept === rest) return event;
  return input === undefined ? kept : { ...kept, input };
}

/** A vendor's own object (`x_groq`), with fields like those of the answer itself. */
function isExtension(name: string): boolean {
  return name.startsWith("x_");
}
