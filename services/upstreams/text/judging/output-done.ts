// Says whether a Responses stream has shown all output that it began. When its caller has left, such a stream is read on for its
// usage alone.

import { isJsonObject, type JsonObject } from "#kit/base/json.ts";

/** Events after which a text or a call is complete. */
const wholeTypes = new Set([
  "response.output_text.done",
  "response.refusal.done",
  "response.function_call_arguments.done",
  "response.custom_tool_call_input.done",
]);
/** Events that begin more output. */
const begunTypes = new Set(["response.output_item.added", "response.content_part.added"]);

/**
 * Is the output of a Responses stream complete after this event? A model that has only reasoned so far still has its answer to write.
 * `before`: the result for the event before.
 */
export function isOutputDoneAfter(event: JsonObject, before: boolean): boolean {
  const type = `${event.type}`;
  if (type.endsWith(".delta") || begunTypes.has(type)) return false;
  if (wholeTypes.has(type)) return true;
  const { item } = event;
  const isItem = type === "response.output_item.done" && isJsonObject(item);
  return before || (isItem && item.type !== "reasoning");
}
