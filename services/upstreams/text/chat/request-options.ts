import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";

/** Fields of a named function, custom tool, grammar and schema: what else a caller wrote there must not become the tool's. */
const functionFields = ["name", "description", "parameters", "strict"];
const customFields = ["name", "description"];
const grammarFields = ["definition", "syntax"];
const schemaFields = ["name", "description", "schema", "strict"];

/** Tools of a chat request in the flat form of Responses, and `search`; types that are flat already stay as they are. */
export function toolsOf(
  tools: JsonValue | undefined,
  search: JsonObject | undefined,
): JsonValue | undefined {
  const flat = Array.isArray(tools) ? tools.map(flatTool) : undefined;
  return search ? [...(flat ?? []), search] : flat;
}

/** `web_search_options` as the tool that Responses have for it. */
export function searchTool(options: JsonValue | undefined): JsonObject | undefined {
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
export function toolChoiceOf(choice: JsonValue | undefined): JsonValue | undefined {
  if (!isJsonObject(choice)) return choice;
  const { allowed_tools: allowed } = choice;
  if (choice.type === "allowed_tools" && isJsonObject(allowed)) {
    const tools = Array.isArray(allowed.tools) ? allowed.tools.map(flatName) : [];
    return { type: "allowed_tools", mode: allowed.mode ?? "auto", tools };
  }
  return flatName(choice);
}

/** `response_format` and `verbosity` as the `text` field. */
export function formatOf(chat: JsonObject): JsonObject | undefined {
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
    // Without a word Responses are strict and Chat Completions are not.
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

/** The fields of these names that are there and not null. */
function only(object: JsonObject, names: readonly string[]): JsonObject {
  const kept = names.filter((name) => Object.hasOwn(object, name) && object[name] !== null);
  return Object.fromEntries(kept.map((name) => [name, object[name] as JsonValue]));
}
