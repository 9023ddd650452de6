import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";

/** The messages of a chat request as Responses items, in their order. */
export function inputOf(messages: JsonValue | undefined): JsonObject[] {
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
      const items = calls.filter(isJsonObject).map((call) => callItem(call, customCalls));
      const said = content ?? message.refusal ?? null;
      // Beside calls, an empty text says nothing; alone it is a turn of the conversation.
      const isSilent = said === null || (said === "" && items.length > 0);
      return isSilent ? items : [{ type: "message", role, content: said }, ...items];
    }
    default:
      return [{ type: "message", role: role ?? "user", content: partsOf(content) ?? "" }];
  }
}

/** Content in parts, as it is beside files, as the parts of Responses; text as it is. */
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
    return { type: "custom_tool_call", call_id: id, name, input };
  }
  const { name = "", arguments: args = "" } = isJsonObject(call.function) ? call.function : {};
  return { type: "function_call", call_id: id, name, arguments: args };
}

function toolOutput(message: JsonObject, customCalls: ReadonlySet<JsonValue>): JsonObject {
  const id = message.tool_call_id ?? "";
  const type = customCalls.has(id) ? "custom_tool_call_output" : "function_call_output";
  return { type, call_id: id, output: message.content ?? "" };
}
