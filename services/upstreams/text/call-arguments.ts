import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";

/** Arguments of a call as JSON text: some servers (llama.cpp) give the object itself. What is no object stays as it is. */
export function argumentsText(value: JsonValue | undefined): JsonValue | undefined {
  return typeof value === "object" && value !== null ? JSON.stringify(value) : value;
}

/** A call of a chat completion, or a piece of one: its `function` or `custom` with arguments that are text. */
export function withArgumentsText(call: JsonObject): JsonObject {
  const said = textIn(call.function, "arguments") ?? textIn(call.custom, "input");
  if (!said) return call;
  return { ...call, [isJsonObject(call.function) ? "function" : "custom"]: said };
}

/** The object with text in this field; undefined where it was text, or nothing, before. */
function textIn(value: JsonValue | undefined, field: string): JsonObject | undefined {
  if (!isJsonObject(value)) return undefined;
  const text = argumentsText(value[field]);
  return text === value[field] ? undefined : { ...value, [field]: text as string };
}
