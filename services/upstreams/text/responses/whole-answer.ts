import type { JsonObject } from "#kit/json.ts";
import { opaqueIn } from "../opaque.ts";
import type { AnswerEvent, Ending } from "../port.ts";
import { usageOfResponse } from "../usage.ts";
import { Emitter } from "./emitter.ts";
import type { Splitter } from "./item-events.ts";
import { wholeEvents } from "./whole-events.ts";

/** A complete response object (of a public answer) as the stream that would have given it. */
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
