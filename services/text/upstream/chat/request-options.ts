import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";

/** Tools of a chat request in the flat form of Responses; types that are flat already stay as they are. */
export function toolsOf(tools: JsonValue | undefined): JsonValue | undefined {
  return Array.isArray(tools) ? tools.map(flatTool) : undefined;
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
    text.format = isSchema ? { type: "json_schema", ...schema } : asked;
  }
  if (typeof chat.verbosity === "string") text.verbosity = chat.verbosity;
  return Object.keys(text).length > 0 ? text : undefined;
}

function flatTool(tool: JsonValue): JsonValue {
  if (!isJsonObject(tool)) return tool;
  if (tool.type === "function" && isJsonObject(tool.function)) {
    // Without a word Responses are strict and Chat Completions are not.
    const { function: named, ...rest } = tool;
    return { ...rest, parameters: null, strict: false, ...withoutNulls(named) };
  }
  if (tool.type === "custom" && isJsonObject(tool.custom)) {
    const { custom, ...rest } = tool;
    const { format, ...named } = custom;
    return { ...rest, ...named, ...(format === undefined ? {} : { format: flatGrammar(format) }) };
  }
  return tool;
}

function flatGrammar(format: JsonValue): JsonValue {
  if (!isJsonObject(format) || !isJsonObject(format.grammar)) return format;
  return { type: "grammar", ...format.grammar };
}

/** `{type, function: {name}}` as `{type, name}`. */
function flatName(choice: JsonValue): JsonValue {
  if (!isJsonObject(choice)) return choice;
  const named = choice.type === "custom" ? choice.custom : choice.function;
  return isJsonObject(named) ? { type: choice.type ?? "function", ...named } : choice;
}

function withoutNulls(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null));
}
