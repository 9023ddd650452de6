// Translates a Chat Completions request into one of Responses.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { reasoningItemsOf, stateBeside } from "./kept-state.ts";
import { isTooMuch, maxStopCharacters, maxStops, stopsOf } from "./stops.ts";

/**
 * A Chat Completions request in the Responses format, for upstreams that know only that format. Fields that mean the same under the
 * same name stay unchanged. {@link untranslatable} finds fields without such a form.
 */
export function toResponsesRequest(chat: JsonObject, passed: readonly string[]): JsonObject {
  const responses: JsonObject = {};
  for (const [name, value] of Object.entries(chat)) {
    const isKnown = !translated.has(name) || (name === "seed" && isPassed(name, passed));
    // In this API null is the default.
    if (value !== null && isKnown && !isDefault(name, value)) responses[name] = value;
  }
  responses.input = inputOf(chat.messages);
  setWhere(responses, "tools", toolsOf(chat.tools, searchTool(chat.web_search_options)));
  setWhere(responses, "tool_choice", toolChoiceOf(chat.tool_choice));
  setWhere(responses, "text", formatOf(chat));
  if (typeof chat.reasoning_effort === "string") {
    const reasoning = isJsonObject(chat.reasoning) ? chat.reasoning : {};
    responses.reasoning = { ...reasoning, effort: chat.reasoning_effort };
  }
  if (chat.logprobs === true) {
    const asked = Array.isArray(chat.include) ? chat.include : [];
    responses.include = [...asked, "message.output_text.logprobs"];
  }
  setWhere(responses, "stream_options", streamOptionsOf(chat.stream_options));
  return responses;
}

/**
 * Fields that become others, or that only control genmesh. `seed` is a hint that Responses do not have, except where the catalog says
 * that the model's upstream takes it.
 */
const translated = new Set([
  "messages",
  "max_completion_tokens",
  "max_tokens",
  "tools",
  "tool_choice",
  "response_format",
  "verbosity",
  "reasoning_effort",
  "logprobs",
  "stream_options",
  "stop",
  "seed",
  "web_search_options",
]);

/** Fields of Chat Completions that Responses do not have, except where the catalog says that the model's upstream takes them. */
const chatOnly = ["function_call", "functions", "logit_bias", "prediction"];
/** Types of `response_format` that Responses have too. */
const formats: readonly JsonValue[] = ["text", "json_object", "json_schema"];

/** The field that a translated request would lack. Undefined where it lacks none. `passed`: the model's `passParameters`. */
export function untranslatable(
  chat: JsonObject,
  passed: readonly string[],
): { param: string; message: string } | undefined {
  const message = "The model does not take this parameter in POST /chat/completions. Leave it out.";
  const param = chatOnly.find((name) => {
    const value = chat[name] ?? null;
    return value !== null && !isDefault(name, value) && !isPassed(name, passed);
  });
  if (param) return { param, message };
  const format = chat.response_format;
  if (isJsonObject(format) && !formats.includes(format.type ?? null)) {
    return {
      param: "response_format.type",
      message: "The model does not offer this format. Use text, json_object or json_schema.",
    };
  }
  if (isTooMuch(stopsOf(chat.stop))) {
    const bounds = `at most ${maxStops} sequences of at most ${maxStopCharacters} characters`;
    return { param: "stop", message: `The parameter 'stop' may have ${bounds}.` };
  }
  return undefined;
}

function isPassed(name: string, passed: readonly string[]): boolean {
  return passed.includes(name) || passed.includes("*");
}

/** Does the value mean the same as an absent field? Responses do not know these fields. */
export function isDefault(name: string, value: JsonValue): boolean {
  switch (name) {
    case "n":
      return value === 1;
    case "presence_penalty":
    case "frequency_penalty":
      return value === 0;
    case "logit_bias":
      return isJsonObject(value) && Object.keys(value).length === 0;
    case "functions":
      return Array.isArray(value) && value.length === 0;
    case "function_call":
      return value === "auto" || value === "none";
    case "modalities":
      return Array.isArray(value) && value.every((one) => one === "text");
    case "top_logprobs":
      return value === 0;
    default:
      return false;
  }
}

/** The usage chunk is made here. Of these options, the upstream gets only the padding of deltas. */
function streamOptionsOf(options: JsonValue | undefined): JsonValue | undefined {
  if (!isJsonObject(options) || options.include_obfuscation === undefined) return undefined;
  return { include_obfuscation: options.include_obfuscation };
}

function setWhere(target: JsonObject, name: string, value: JsonValue | undefined): void {
  if (value !== undefined && value !== null) target[name] = value;
}

/** The messages of a chat request as Responses items, in their order. */
function inputOf(messages: JsonValue | undefined): JsonObject[] {
  if (!Array.isArray(messages)) return [];
  const customCalls = new Set<JsonValue>();
  return messages.filter(isJsonObject).flatMap((message) => itemsOf(message, customCalls));
}

function itemsOf(message: JsonObject, customCalls: Set<JsonValue>): JsonObject[] {
  const { role, content } = message;
  switch (role) {
    case "tool":
      return [toolOutput(message, customCalls)];
    case "assistant": {
      const calls = Array.isArray(message.tool_calls) ? message.tool_calls : [];
      const thoughts = reasoningItemsOf(message);
      const items = calls.filter(isJsonObject).map((call) => callItem(call, customCalls));
      const said = content ?? message.refusal ?? null;
      // Beside calls, an empty text says nothing. Alone it is a turn of the conversation.
      const isSilent = said === null || (said === "" && items.length > 0);
      if (isSilent) return [...thoughts, ...items];
      const spoken = { type: "message", role, content: said, ...stateBeside(message) };
      return [...thoughts, spoken, ...items];
    }
    default:
      return [{ type: "message", role: role ?? "user", content: partsOf(content) ?? "" }];
  }
}

/** Content in parts (as it is beside files) as the parts of Responses. Text stays unchanged. */
function partsOf(content: JsonValue | undefined): JsonValue | undefined {
  if (!Array.isArray(content)) return content;
  return content.filter(isJsonObject).map((part) => {
    const { file, ...rest } = part;
    if (part.type === "text") return { ...part, type: "input_text" };
    if (part.type === "file" && isJsonObject(file)) return { ...rest, ...file, type: "input_file" };
    return part;
  });
}

function callItem(call: JsonObject, customCalls: Set<JsonValue>): JsonObject {
  const id = call.id ?? "";
  const { custom } = call;
  if (call.type === "custom" && isJsonObject(custom)) {
    customCalls.add(id);
    const { name = "", input = "" } = custom;
    return { type: "custom_tool_call", call_id: id, name, input, ...stateBeside(call) };
  }
  const { name = "", arguments: args = "" } = isJsonObject(call.function) ? call.function : {};
  return { type: "function_call", call_id: id, name, arguments: args, ...stateBeside(call) };
}

function toolOutput(message: JsonObject, customCalls: ReadonlySet<JsonValue>): JsonObject {
  const id = message.tool_call_id ?? "";
  const type = customCalls.has(id) ? "custom_tool_call_output" : "function_call_output";
  return { type, call_id: id, output: message.content ?? "" };
}

/** Fields of a named function, custom tool, grammar and schema. Other fields of the caller's must not become fields of the tool. */
const functionFields = ["name", "description", "parameters", "strict"];
const customFields = ["name", "description"];
const grammarFields = ["definition", "syntax"];
const schemaFields = ["name", "description", "schema", "strict"];

/** Tools of a chat request in the flat form of Responses, and `search`. Types that are flat already stay unchanged. */
function toolsOf(
  tools: JsonValue | undefined,
  search: JsonObject | undefined,
): JsonValue | undefined {
  const flat = Array.isArray(tools) ? tools.map(flatTool) : undefined;
  return search ? [...(flat ?? []), search] : flat;
}

/** `web_search_options` as the tool that Responses have for the search. */
function searchTool(options: JsonValue | undefined): JsonObject | undefined {
  if (!isJsonObject(options)) return undefined;
  const tool: JsonObject = { type: "web_search", ...only(options, ["search_context_size"]) };
  const { user_location: location } = options;
  if (isJsonObject(location) && isJsonObject(location.approximate)) {
    const places = ["city", "country", "region", "timezone"];
    tool.user_location = { type: "approximate", ...only(location.approximate, places) };
  }
  return tool;
}

/** `tool_choice` in the form of Responses. */
function toolChoiceOf(choice: JsonValue | undefined): JsonValue | undefined {
  if (!isJsonObject(choice)) return choice;
  const { allowed_tools: allowed } = choice;
  if (choice.type === "allowed_tools" && isJsonObject(allowed)) {
    const tools = Array.isArray(allowed.tools) ? allowed.tools.map(flatName) : [];
    return { type: "allowed_tools", mode: allowed.mode ?? "auto", tools };
  }
  return flatName(choice);
}

/** `response_format` and `verbosity` as the `text` field. */
function formatOf(chat: JsonObject): JsonObject | undefined {
  const text: JsonObject = {};
  const { response_format: asked } = chat;
  if (isJsonObject(asked)) {
    const { json_schema: schema } = asked;
    const isSchema = asked.type === "json_schema" && isJsonObject(schema);
    text.format = isSchema ? { type: "json_schema", ...only(schema, schemaFields) } : asked;
  }
  if (typeof chat.verbosity === "string") text.verbosity = chat.verbosity;
  return Object.keys(text).length > 0 ? text : undefined;
}

function flatTool(tool: JsonValue): JsonValue {
  if (!isJsonObject(tool)) return tool;
  if (tool.type === "function" && isJsonObject(tool.function)) {
    // Where `strict` is absent, Responses are strict and Chat Completions are not.
    const { function: named, ...rest } = tool;
    return { ...rest, parameters: null, strict: false, ...only(named, functionFields) };
  }
  if (tool.type === "custom" && isJsonObject(tool.custom)) {
    const { custom, ...rest } = tool;
    const { format } = custom;
    const shape = format === undefined ? {} : { format: flatGrammar(format) };
    return { ...rest, ...only(custom, customFields), ...shape };
  }
  return tool;
}

function flatGrammar(format: JsonValue): JsonValue {
  if (!isJsonObject(format) || !isJsonObject(format.grammar)) return format;
  return { type: "grammar", ...only(format.grammar, grammarFields) };
}

/** `{type, function: {name}}` as `{type, name}`. */
function flatName(choice: JsonValue): JsonValue {
  if (!isJsonObject(choice)) return choice;
  const named = choice.type === "custom" ? choice.custom : choice.function;
  return isJsonObject(named)
    ? { type: choice.type ?? "function", ...only(named, ["name"]) }
    : choice;
}

/** The fields of these names that are present and not null. */
function only(object: JsonObject, names: readonly string[]): JsonObject {
  const kept = names.filter((name) => Object.hasOwn(object, name) && object[name] !== null);
  return Object.fromEntries(kept.map((name) => [name, object[name] as JsonValue]));
}
