// Makes text of a call's arguments where a server sent them as an object. The readers of Responses and of Chat Completions share
// it.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";

/** Arguments of a call as JSON text. Some servers (llama.cpp) give the object itself. A value that is no object stays unchanged. */
export function argumentsText(value: JsonValue | undefined): JsonValue | undefined {
  return typeof value === "object" && value !== null ? JSON.stringify(value) : value;
}

/** A call of a chat completion, or a piece of one, with text as the arguments of its `function` or `custom`. */
export function withArgumentsText(call: JsonObject): JsonObject {
  const said = textIn(call.function, "arguments") ?? textIn(call.custom, "input");
  if (!said) return call;
  return { ...call, [isJsonObject(call.function) ? "function" : "custom"]: said };
}

/** The object with text in this field. Undefined where the field held text or nothing before. */
function textIn(value: JsonValue | undefined, field: string): JsonObject | undefined {
  if (!isJsonObject(value)) return undefined;
  const text = argumentsText(value[field]);
  return text === value[field] ? undefined : { ...value, [field]: text as string };
}
