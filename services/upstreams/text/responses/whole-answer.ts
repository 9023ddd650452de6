// Makes a Responses stream of a whole response: for answers of the built-in model, and for answers that were kept.

import type { JsonObject } from "#kit/base/json.ts";
import { opaqueIn } from "../opaque.ts";
import type { AnswerEvent, Ending } from "../port.ts";
import { usageOfResponse } from "../usage.ts";
import { Emitter } from "./emitter.ts";
import { itemEvents, type Splitter } from "./item-events.ts";

/** The events of the stream that would have given a complete response object of a public answer. */
export function* wholeAnswerEvents(response: JsonObject, split?: Splitter): Iterable<AnswerEvent> {
  const emitter = new Emitter();
  for (const event of wholeEvents(response, split)) {
    emitter.out = [];
    const isLast = event.type === `response.${response.status}`;
    emitter.send(event, {
      text: typeof event.delta === "string" ? event.delta : "",
      ...(event.type === "response.output_item.done" ? { opaque: opaqueIn(event.item) } : {}),
      ...(isLast
        ? { ending: response.status as Ending, usage: usageOfResponse(response.usage) }
        : {}),
    });
    yield* emitter.out;
  }
}

/** The events of a complete response object, without sequence numbers. Its texts are cut by `split`. */
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
