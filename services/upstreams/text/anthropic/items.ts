// Translates blocks of an answer of Messages into items of Responses.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { carrierOf } from "./carrier.ts";
import { customText, type ToolNames } from "./tools.ts";

/** An item of reasoning made of a whole thinking block. */
export function reasoningItem(block: JsonObject): JsonObject {
  const { thinking } = block;
  const carrier = carrierOf(block);
  const isShown = typeof thinking === "string" && thinking !== "";
  return {
    type: "reasoning",
    summary: isShown ? [{ type: "summary_text", text: thinking }] : [],
    ...(carrier !== undefined && { encrypted_content: carrier }),
  };
}

/** The item of a call as it begins, without its input. */
export function callItem({ id, name }: JsonObject, names: ToolNames): JsonObject {
  const known = typeof name === "string" ? names.get(name) : undefined;
  const named = {
    call_id: id ?? "",
    name: known?.name ?? name ?? "",
    ...(known?.namespace !== undefined && { namespace: known.namespace }),
  };
  return known?.isCustom
    ? { type: "custom_tool_call", ...named, input: "" }
    : { type: "function_call", ...named, arguments: "" };
}

/** The same as it ends. `json`: its input, as the model wrote it. */
export function wholeCall(item: JsonObject, json: string): JsonObject {
  const done = { ...item, status: "completed" };
  if (item.type === "custom_tool_call") return { ...done, input: customText(json) };
  return { ...done, arguments: json === "" ? "{}" : json };
}

/** The items of a whole message's content. Neighbouring texts are parts of one item. Blocks of other kinds are left out. */
export function itemsOf(content: readonly JsonValue[], names: ToolNames): JsonObject[] {
  const items: JsonObject[] = [];
  let parts: JsonObject[] | undefined;
  for (const block of content.filter(isJsonObject)) {
    if (block.type === "text") {
      if (!parts) {
        parts = [];
        items.push({ type: "message", role: "assistant", status: "completed", content: parts });
      }
      parts.push({ type: "output_text", text: block.text ?? "" });
      continue;
    }
    const item = itemOf(block, names);
    if (!item) continue;
    items.push(item);
    parts = undefined;
  }
  return items;
}

function itemOf(block: JsonObject, names: ToolNames): JsonObject | undefined {
  switch (block.type) {
    case "thinking":
    case "redacted_thinking":
      return reasoningItem(block);
    case "tool_use":
      return wholeCall(callItem(block, names), JSON.stringify(block.input ?? {}));
    default:
      return undefined;
  }
}
