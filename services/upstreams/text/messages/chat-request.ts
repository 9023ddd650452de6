// Translates a Messages request into one of Chat Completions. `request.ts` translates it into one of Responses.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { blocksOf, inputParts } from "./items.ts";
import { systemTexts } from "./request.ts";

/**
 * A Messages request in the format of Chat Completions, for upstreams that know that one. The body must have passed the checks of
 * `text/request/messages.ts`, like that of `responsesOfMessages`.
 */
export function chatOfMessages(body: JsonObject): JsonObject {
  const chat: JsonObject = { messages: messagesOf(body) };
  const set = (name: string, value: JsonValue | undefined) => {
    if (value !== undefined && value !== null) chat[name] = value;
  };
  for (const name of passed) set(name, body[name]);
  set("tools", toolsOf(body.tools));
  set("tool_choice", toolChoiceOf(body.tool_choice));
  if (isJsonObject(body.tool_choice) && body.tool_choice.disable_parallel_tool_use === true) {
    chat.parallel_tool_calls = false;
  }
  if (isJsonObject(body.reasoning)) set("reasoning_effort", body.reasoning.effort);
  set("response_format", formatOf(body.output_config));
  return chat;
}

/** Fields that mean the same under the same name, and those that are set here (`text/request`). */
const passed = ["prompt_cache_key", "service_tier", "store", "temperature", "top_p"];

function messagesOf({ system, messages }: JsonObject): JsonObject[] {
  const instructions = systemTexts(system).join("\n\n");
  const made: JsonObject[] = instructions === "" ? [] : [{ role: "system", content: instructions }];
  for (const message of Array.isArray(messages) ? messages.filter(isJsonObject) : []) {
    const blocks = blocksOf(message.content);
    if (message.role === "assistant") made.push(...turnOf(blocks));
    else if (message.role === "system") addToUser(made, blocks);
    else made.push(...messagesOfUser(blocks));
  }
  return made;
}

/** Later instructions join the user's message before them. Templates of many models take a system message in first place alone. */
function addToUser(made: JsonObject[], blocks: readonly JsonObject[]): void {
  const before = made.at(-1);
  const parts = blocks.flatMap(partsOf);
  if (before?.role !== "user") made.push(...userMessage(parts));
  else made.splice(-1, 1, ...userMessage([...asParts(before.content), ...parts]));
}

/** Results of calls come first, as messages of their own. Images and files in them follow as the user's. */
function messagesOfUser(blocks: readonly JsonObject[]): JsonObject[] {
  const results: JsonObject[] = [];
  const parts: JsonObject[] = [];
  for (const block of blocks) {
    if (block.type !== "tool_result") {
      parts.push(...partsOf(block));
      continue;
    }
    const found = blocksOf(block.content).flatMap(partsOf);
    const texts = found.flatMap(({ text }) => (typeof text === "string" ? [text] : []));
    const tool_call_id = block.tool_use_id ?? "";
    results.push({ role: "tool", tool_call_id, content: texts.join("\n") });
    parts.push(...found.filter(({ type }) => type !== "text"));
  }
  return [...results, ...userMessage(parts)];
}

/** A text alone is a string, which every server takes. */
function userMessage(parts: readonly JsonObject[]): JsonObject[] {
  if (parts.length === 0) return [];
  const isText = parts.every(({ type }) => type === "text");
  const content = isText ? parts.map(({ text }) => text).join("\n\n") : [...parts];
  return [{ role: "user", content }];
}

function asParts(content: JsonValue | undefined): JsonObject[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return Array.isArray(content) ? content.filter(isJsonObject) : [];
}

/** A block of a user as parts of a message. */
function partsOf(block: JsonObject): JsonObject[] {
  return inputParts(block).map((part) => {
    const { type, image_url: url = "", filename = "", file_data = "", text = "" } = part;
    if (type === "input_image") return { type: "image_url", image_url: { url } };
    if (type === "input_file") return { type: "file", file: { filename, file_data } };
    return { type: "text", text };
  });
}

/** A turn of the assistant. Thinking that was made by such an upstream has no signature, and goes back as it came. */
function turnOf(blocks: readonly JsonObject[]): JsonObject[] {
  const texts = blocks.filter(({ type }) => type === "text").map(({ text }) => `${text}`);
  const thoughts = blocks
    .filter(({ type, signature }) => type === "thinking" && (signature ?? "") === "")
    .map(({ thinking }) => `${thinking}`);
  const calls = blocks.filter(({ type }) => type === "tool_use").map(callOf);
  if (texts.length + thoughts.length + calls.length === 0) return [];
  return [
    {
      role: "assistant",
      content: texts.length > 0 ? texts.join("") : calls.length > 0 ? null : "",
      ...(thoughts.length > 0 ? { reasoning_content: thoughts.join("\n\n") } : {}),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    },
  ];
}

function callOf({ id, name, input }: JsonObject): JsonObject {
  const called = { name: name ?? "", arguments: JSON.stringify(input ?? {}) };
  return { id: id ?? "", type: "function", function: called };
}

function toolsOf(tools: JsonValue | undefined): JsonValue | undefined {
  if (!Array.isArray(tools) || tools.length === 0) return undefined;
  return tools.filter(isJsonObject).map((tool) => ({
    type: "function",
    function: {
      name: tool.name ?? "",
      ...(typeof tool.description === "string" ? { description: tool.description } : {}),
      parameters: tool.input_schema ?? null,
      ...(tool.strict === true ? { strict: true } : {}),
    },
  }));
}

function toolChoiceOf(choice: JsonValue | undefined): JsonValue | undefined {
  if (!isJsonObject(choice)) return undefined;
  if (choice.type === "any") return "required";
  if (choice.type !== "tool") return choice.type;
  return { type: "function", function: { name: choice.name ?? "" } };
}

function formatOf(config: JsonValue | undefined): JsonValue | undefined {
  if (!isJsonObject(config) || !isJsonObject(config.format)) return undefined;
  const { schema = null } = config.format;
  return { type: "json_schema", json_schema: { name: "answer", schema, strict: true } };
}
