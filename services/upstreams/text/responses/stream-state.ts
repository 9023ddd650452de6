// The part of `reader.ts` that the functions of `handlers.ts` may use, apart so that neither imports the other in a circle.

import type { JsonObject } from "#kit/base/json.ts";
import type { ResponseFacts, ResponseStatus } from "./complete-response.ts";
import type { Emitter } from "./emitter.ts";
import type { OutputTracker } from "./output-tracker.ts";

/** The state of one Responses stream that handlers of single events share. */
export interface StreamState {
  readonly facts: ResponseFacts;
  readonly emitter: Emitter;
  readonly tracker: OutputTracker;
  /** Those of `opaque` that were not reported before. */
  fresh(opaque: readonly string[]): string[];
  /** Completes an event's `response`. Its id and time stay those of the first. */
  complete(response: JsonObject, status: ResponseStatus): JsonObject;
}
