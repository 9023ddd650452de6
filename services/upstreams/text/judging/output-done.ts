import { isJsonObject, type JsonObject } from "#kit/base/json.ts";

/** Events after which a text or a call is whole. */
const wholeTypes = new Set([
  "response.output_text.done",
  "response.refusal.done",
  "response.function_call_arguments.done",
  "response.custom_tool_call_input.done",
]);
/** Events that begin more output. */
const begunTypes = new Set(["response.output_item.added", "response.content_part.added"]);

/**
 * Is the output of a Responses stream whole after this event? A model that has only thought so far still owes its answer.
 * `before`: what it was.
 */
export function isOutputDoneAfter(event: JsonObject, before: boolean): boolean {
  const type = `${event.type}`;
  if (type.endsWith(".delta") || begunTypes.has(type)) return false;
  if (wholeTypes.has(type)) return true;
  const { item } = event;
  const isItem = type === "response.output_item.done" && isJsonObject(item);
  return before || (isItem && item.type !== "reasoning");
}
