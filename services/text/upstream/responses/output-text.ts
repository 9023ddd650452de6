import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";

/** What the model generated in these items: text, refusals, reasoning, arguments. For an estimate of its tokens. */
export function generatedText(output: readonly JsonObject[]): string {
  return output.map(textOfItem).join("");
}

function textOfItem(item: JsonObject): string {
  switch (item.type) {
    case "message":
      // Compaction keeps the caller's own messages; those were not generated.
      return item.role === "assistant" ? textOfParts(item.content) : "";
    case "reasoning":
      return textOfParts(item.summary) + textOfParts(item.content);
    case "function_call":
    case "mcp_call":
      return textOf(item.name) + textOf(item.arguments);
    case "custom_tool_call":
      return textOf(item.name) + textOf(item.input);
    case "code_interpreter_call":
      return textOf(item.code);
    default:
      return "";
  }
}

function textOfParts(parts: JsonValue | undefined): string {
  if (!Array.isArray(parts)) return "";
  return parts
    .map((part) => (isJsonObject(part) ? textOf(part.text ?? part.refusal) : ""))
    .join("");
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}
