// Translates a Messages request into one of Responses.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { itemsOf } from "./items.ts";

/** The beginning of the block in which Claude Code names its version. It is for Anthropic alone, and changes with each release. */
const attribution = "x-anthropic-billing-header:";

/**
 * A Messages request in the Responses format, for upstreams that know that one. The body must have passed the checks of
 * `text/request/messages.ts`, which puts `reasoning` in it: the thinking that is asked for, in the words of Responses.
 */
export function responsesOfMessages(body: JsonObject): JsonObject {
  const responses: JsonObject = { input: itemsOf(body.messages) };
  const set = (name: string, value: JsonValue | undefined) => {
    if (value !== undefined && value !== null) responses[name] = value;
  };
  for (const name of passed) set(name, body[name]);
  const { reasoning } = body;
  if (isJsonObject(reasoning) && Object.keys(reasoning).length > 0) set("reasoning", reasoning);
  set("instructions", instructionsOf(body.system));
  set("tools", toolsOf(body.tools));
  set("tool_choice", toolChoiceOf(body.tool_choice));
  if (isJsonObject(body.tool_choice) && body.tool_choice.disable_parallel_tool_use === true) {
    responses.parallel_tool_calls = false;
  }
  set("text", formatOf(body.output_config));
  if (isThinking(body) && isJsonObject(reasoning)) set("include", ["reasoning.encrypted_content"]);
  return responses;
}

/** Fields that mean the same under the same name, and those that are set here (`text/request`). */
const passed = ["model", "prompt_cache_key", "service_tier", "store", "temperature", "top_p"];

/** Does the caller ask for thinking? */
export function isThinking({ thinking }: JsonObject): boolean {
  return isJsonObject(thinking) && thinking.type !== "disabled";
}

/** The texts of a system prompt. The caller's attribution is left out. */
export function systemTexts(system: JsonValue | undefined): string[] {
  const blocks = Array.isArray(system) ? system : [{ text: system ?? null }];
  const texts = blocks.flatMap((block) =>
    isJsonObject(block) && typeof block.text === "string" ? [block.text] : [],
  );
  return texts[0]?.startsWith(attribution) ? texts.slice(1) : texts;
}

function instructionsOf(system: JsonValue | undefined): string | undefined {
  const text = systemTexts(system).join("\n\n");
  return text === "" ? undefined : text;
}

/** Tools as functions. Where `strict` is absent, Responses are strict and Messages is not. */
function toolsOf(tools: JsonValue | undefined): JsonValue | undefined {
  if (!Array.isArray(tools) || tools.length === 0) return undefined;
  return tools.filter(isJsonObject).map((tool) => ({
    type: "function",
    name: tool.name ?? "",
    ...(typeof tool.description === "string" ? { description: tool.description } : {}),
    parameters: tool.input_schema ?? null,
    strict: tool.strict === true,
  }));
}

function toolChoiceOf(choice: JsonValue | undefined): JsonValue | undefined {
  if (!isJsonObject(choice)) return undefined;
  switch (choice.type) {
    case "any":
      return "required";
    case "tool":
      return { type: "function", name: choice.name ?? "" };
    default:
      return choice.type;
  }
}

/** The format of the answer. Messages has no name for a schema, which Responses need. */
function formatOf(config: JsonValue | undefined): JsonValue | undefined {
  if (!isJsonObject(config) || !isJsonObject(config.format)) return undefined;
  const { schema = null } = config.format;
  return { format: { type: "json_schema", name: "answer", schema, strict: true } };
}
