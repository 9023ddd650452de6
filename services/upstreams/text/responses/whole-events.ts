import type { JsonObject } from "#kit/json.ts";
import { itemEvents, type Splitter } from "./item-events.ts";

/** The events of a complete response object, without sequence numbers; its texts are cut by `split`. */
export function* wholeEvents(response: JsonObject, split?: Splitter): Iterable<JsonObject> {
  const begun: JsonObject = {
    ...response,
    status: "in_progress",
    completed_at: null,
    incomplete_details: null,
    error: null,
    output: [],
    usage: null,
  };
  yield { type: "response.created", response: begun };
  yield { type: "response.in_progress", response: begun };
  const output = Array.isArray(response.output) ? response.output : [];
  for (const [index, item] of output.entries()) yield* itemEvents(item as JsonObject, index, split);
  yield { type: `response.${response.status}`, response };
}
